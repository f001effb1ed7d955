"""Prints the revenue per product from sales.csv. A negative quantity is a return."""

import csv
from collections import defaultdict
from pathlib import Path


def read_sales(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    return rows[1:]  # without the header


def sum_revenue(sales: list[dict[str, str]]) -> dict[str, float]:
    revenue: dict[str, float] = defaultdict(float)
    for sale in sales:
        revenue[sale["product"]] += int(sale["quantity"]) * float(sale["unit_price"])
    return revenue


def main() -> None:
    revenue = sum_revenue(read_sales(Path(__file__).with_name("sales.csv")))
    for product, amount in sorted(revenue.items(), key=lambda item: -item[1]):
        print(f"{product:<12}{amount:>10.2f} €")
    print(f"{'total':<12}{sum(revenue.values()):>10.2f} €")


if __name__ == "__main__":
    main()
