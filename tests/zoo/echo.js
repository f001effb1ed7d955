// A good one: says what it was told.
let told = "";
process.stdin.on("data", (chunk) => (told += chunk));
process.stdin.on("end", () => console.log(JSON.stringify({ status: "success", result: JSON.parse(told) })));
