"""Small matrices as lists of rows, exact for exact numbers. At most 12 rows."""

from collections.abc import Callable

from nodes import CalcError, Value
from numeric import apply, divide, is_number

MAX_ROWS = 12
Matrix = list[list[Value]]


def matrix(value: Value) -> Matrix:
    """The value as a matrix of equal rows."""
    if not isinstance(value, list) or not value:
        raise CalcError("a matrix is needed here", "For example det([[1,2],[3,4]]) or det([1,2;3,4]).")
    rows = value if isinstance(value[0], list) else [value]
    if len({len(row) if isinstance(row, list) else -1 for row in rows}) != 1 or not isinstance(rows[0], list):
        raise CalcError("the rows of a matrix must have the same length", "For example [[1,2],[3,4]].")
    if max(len(rows), len(rows[0])) > MAX_ROWS or not all(is_number(item) for row in rows for item in row):
        raise CalcError(
            f"a matrix has at most {MAX_ROWS} rows and {MAX_ROWS} columns, all numbers",
            "Use a special tool for larger ones.",
        )
    return rows


def square(value: Value) -> Matrix:
    """The value as a square matrix."""
    rows = matrix(value)
    if len(rows) != len(rows[0]):
        raise CalcError(
            f"a square matrix is needed, not {len(rows)}×{len(rows[0])}", "It needs as many rows as columns."
        )
    return rows


def solve_rows(left: Matrix, right: Matrix) -> tuple[Matrix | None, Value]:
    """Gauss-Jordan with the largest pivot: the solution (None when singular) and the determinant."""
    size = len(left)
    rows = [list(a) + list(b) for a, b in zip(left, right, strict=True)]
    determinant: Value = 1
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(rows[row][column]))
        if abs(rows[pivot][column]) <= (1e-14 if isinstance(rows[pivot][column], float | complex) else 0):
            return None, 0
        if pivot != column:
            rows[pivot], rows[column] = rows[column], rows[pivot]
            determinant = -determinant
        head = rows[column][column]
        determinant = apply(lambda a, b: a * b, determinant, head)
        rows[column] = [apply(divide, item, head) for item in rows[column]]
        for row in range(size):
            if row != column and rows[row][column]:
                times = rows[row][column]
                rows[row] = [apply(_less, a, times, b) for a, b in zip(rows[row], rows[column], strict=True)]
    return [row[size:] for row in rows], determinant


def _less(a: Value, times: Value, b: Value) -> Value:
    return a - times * b


def determinant(value: Value) -> Value:
    """0 when singular."""
    rows = square(value)
    return solve_rows(rows, [[] for _ in rows])[1]


def inverse(value: Value) -> Matrix:
    """Refused when singular."""
    rows = square(value)
    found, _ = solve_rows(rows, identity(len(rows)))
    if found is None:
        raise CalcError(
            "the matrix has no inverse (its determinant is 0)", "Check whether its rows depend on each other."
        )
    return found


def identity(size: Value) -> Matrix:
    """Ones on the diagonal."""
    if not isinstance(size, int) or not 1 <= size <= MAX_ROWS:
        raise CalcError(f"the size of an identity matrix must be from 1 to {MAX_ROWS}", "For example identity(3).")
    return [[int(row == column) for column in range(size)] for row in range(size)]


def transpose(value: Value) -> Matrix:
    """Rows become columns."""
    return [list(column) for column in zip(*matrix(value), strict=True)]


def product(left: Value, right: Value) -> Value:
    """Of two matrices; of a matrix and a list, the list again; of two lists, their scalar product."""
    flat = not isinstance(right[0], list) if isinstance(right, list) and right else False
    if flat and isinstance(left, list) and left and not isinstance(left[0], list):
        return dot(left, right)
    a, b = matrix(left), ([[item] for item in right] if flat else matrix(right))
    if len(a[0]) != len(b):
        raise CalcError(
            f"the sizes of the matrices do not match: {len(a)}×{len(a[0])} and {len(b)}×{len(b[0])}",
            "The left one needs as many columns as the right one has rows.",
        )
    columns = list(zip(*b, strict=True))
    found = [[_sum(row, column) for column in columns] for row in a]
    return [row[0] for row in found] if flat else found


def _sum(row: list[Value], column: tuple[Value, ...] | list[Value]) -> Value:
    return apply(lambda: sum(a * b for a, b in zip(row, column, strict=True)))


def dot(left: Value, right: Value) -> Value:
    """The scalar product of two lists."""
    if not isinstance(left, list) or not isinstance(right, list) or len(left) != len(right):
        raise CalcError("dot needs two vectors of the same length", "For example dot([1,2,3],[4,5,6]).")
    return _sum(left, right)


def cross(left: Value, right: Value) -> list[Value]:
    """The vector product of two lists of three."""
    if not isinstance(left, list) or not isinstance(right, list) or len(left) != 3 or len(right) != 3:
        raise CalcError("cross needs two vectors of three numbers", "For example cross([1,0,0],[0,1,0]).")
    (a, b, c), (x, y, z) = left, right
    return [b * z - c * y, c * x - a * z, a * y - b * x]


def trace(value: Value) -> Value:
    """The sum of the diagonal."""
    rows = square(value)
    return sum(rows[i][i] for i in range(len(rows)))


def rank(value: Value) -> int:
    """By elimination."""
    rows = [list(row) for row in matrix(value)]
    found = 0
    for column in range(len(rows[0])):
        pivot = next((row for row in range(found, len(rows)) if abs(rows[row][column]) > 1e-12), None)
        if pivot is None:
            continue
        rows[found], rows[pivot] = rows[pivot], rows[found]
        for row in range(found + 1, len(rows)):
            times = apply(divide, rows[row][column], rows[found][column])
            rows[row] = [apply(_less, a, times, b) for a, b in zip(rows[row], rows[found], strict=True)]
        found += 1
        if found == len(rows):
            break
    return found


MATRICES: dict[str, Callable[..., Value]] = {
    "det": determinant, "inv": inverse, "inverse": inverse, "transpose": transpose, "identity": identity,
    "eye": identity,
    "dot": dot, "cross": cross, "trace": trace, "rank": rank, "matmul": product,
}  # fmt: skip
