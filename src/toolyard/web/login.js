// Lets a person see the key that they typed. Without this script the button stays hidden.
const show = document.getElementById("show");
const key = document.querySelector("input[name=key]");
if (show && key) {
  show.hidden = false;
  show.addEventListener("click", () => {
    const isShown = key.type === "text";
    key.type = isShown ? "password" : "text";
    show.setAttribute("aria-pressed", String(!isShown));
    key.focus();
  });
}
