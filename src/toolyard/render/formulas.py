"""Formulas: found in Markdown in the same way by all renderers, and TeX as a line one can read.

In a sentence a formula between dollars begins and ends with a non-blank character, and no digit stands right before or
after it, so that prices stay prices. Code begins before a formula does: there is no backtick in one. A
formula of its own has at most 100 lines.

Some models put a formula of a sentence between ``\\(`` and ``\\)``, one on its own lines between ``\\[`` and ``\\]``.
In Markdown these are just brackets, so only a model's own text is read so.

``make_readable`` writes ``\\frac{a}{b} \\times x^2`` as ``a/b × x²``. Unknown commands stay as they are.
"""

import re

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.dollarmath.index import math_block_dollar

from toolyard.protocol.regex import compile_pattern

_MAX_LINES = 100
_BLOCK = math_block_dollar(allow_labels=False, allow_blank_lines=False)
_TEXT = r"[^$\\`]*+(?:\\[\s\S][^$\\`]*+)*+"
_PARENTHESES = compile_pattern(r"\\\((?P<tex>[^\\`]*+(?:\\(?![()\[\]])[\s\S][^\\`]*+)*+)\\\)")
_INLINE = compile_pattern(
    rf"(?<!\d)(?:\$\$(?!\s)(?P<double>{_TEXT}(?:\$(?!\$){_TEXT})*+)(?<!\s)\$\$"
    rf"|\$(?![\s$])(?P<single>{_TEXT})(?<!\s)\$)(?!\d)"
)
_MAX_TEX = 4_000
_MAX_FRACTIONS = 20  # levels of fractions and roots in one another
_NAMES = """
alpha=α beta=β gamma=γ delta=δ epsilon=ε varepsilon=ε zeta=ζ eta=η theta=θ vartheta=ϑ iota=ι kappa=κ lambda=λ mu=μ
nu=ν xi=ξ pi=π rho=ρ sigma=σ tau=τ upsilon=υ phi=φ varphi=φ chi=χ psi=ψ omega=ω Gamma=Γ Delta=Δ Theta=Θ Lambda=Λ
Xi=Ξ Pi=Π Sigma=Σ Phi=Φ Psi=Ψ Omega=Ω times=× cdot=· div=÷ pm=± mp=∓ leq=≤ le=≤ geq=≥ ge=≥ neq=≠ ne=≠ approx=≈
equiv=≡ sim=∼ propto=∝ infty=∞ partial=∂ nabla=∇ sum=∑ prod=∏ int=∫ oint=∮ in=∈ notin=∉ subset=⊂ subseteq=⊆ cup=∪
cap=∩ emptyset=∅ forall=∀ exists=∃ neg=¬ land=∧ lor=∨ to=→ rightarrow=→ leftarrow=← Rightarrow=⇒ Leftarrow=⇐ iff=⇔
Leftrightarrow=⇔ mapsto=↦ ldots=… cdots=⋯ dots=… circ=∘ degree=° angle=∠ perp=⊥ mid=∣ parallel=∥ oplus=⊕ otimes=⊗
hbar=ℏ ell=ℓ Re=ℜ Im=ℑ langle=⟨ rangle=⟩ lfloor=⌊ rfloor=⌋ lceil=⌈ rceil=⌉ prime=′ star=⋆ ast=∗
"""
_SIGNS = dict(pair.split("=") for pair in _NAMES.split())
_UP = str.maketrans("0123456789+-=()nix", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱˣ")
_DOWN = str.maketrans("0123456789+-=()aeoxijnkm", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₒₓᵢⱼₙₖₘ")
_PLAIN = r"\{([^{}\\]*)\}"
_FRACTION = re.compile(rf"\\[dt]?frac\s*{_PLAIN}\s*{_PLAIN}")
_ROOT = re.compile(rf"\\sqrt\s*{_PLAIN}")
_NAMED = re.compile(
    rf"\\(?:text|mathrm|mathbf|mathit|mathbb|mathcal|operatorname|textbf|textit|boldsymbol|vec|hat|bar)\s*{_PLAIN}"
)
_SPACING = re.compile(r"\\(?:left|right|big|Big|displaystyle|limits|quad|qquad|[,;:!])(?![A-Za-z])")
_COMMAND = re.compile(r"\\([A-Za-z]+)")
_SCRIPT = re.compile(r"([_^])(?:\{([^{}\\]*)\}|([0-9A-Za-z+\-]))")
_BLANKS = re.compile(r"[ \t]{2,}")


def find_formulas(parser: MarkdownIt) -> None:
    """Make ``parser`` emit ``math_inline``, ``math_inline_double`` and ``math_block``."""
    parser.use(dollarmath_plugin, allow_labels=False)
    parser.inline.ruler.at("math_inline", _parse_inline)
    parser.block.ruler.at("math_block", _parse_block)


def find_bracketed_formulas(parser: MarkdownIt) -> None:
    """Make ``parser`` emit them for ``\\(`` and ``\\[`` too."""
    parser.inline.ruler.before("escape", "math_parentheses", _parse_parenthesised)
    parser.block.ruler.before(
        "math_block", "math_brackets", _parse_bracketed, {"alt": ["paragraph", "blockquote", "list"]}
    )


def _parse_parenthesised(state: StateInline, silent: bool) -> bool:  # noqa: FBT001
    match = _PARENTHESES.match(state.src, state.pos, state.posMax)
    tex = match["tex"].strip() if match else ""
    if match is None or not tex:
        return False
    if not silent:
        token = state.push("math_inline", "math", 0)
        token.content, token.markup = tex, "$"
    state.pos = match.end()
    return True


def _parse_bracketed(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001
    lines: list[str] = []
    for number in range(start, min(end, start + _MAX_LINES)):
        line = state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]].strip()
        if line.startswith(r"\[") != (number == start) or not line or state.sCount[number] < state.blkIndent:
            return False
        lines.append(line)
        if r"\]" in line:
            break
    tex = "\n".join(lines)[2:-2].strip()
    if not lines or not lines[-1].endswith(r"\]") or lines[-1].count(r"\]") > 1 or not tex:
        return False
    if not silent:
        state.line = start + len(lines)
        token = state.push("math_block", "math", 0)
        token.content, token.markup, token.block, token.map = tex, "$$", True, [start, state.line]
    return True


def _parse_inline(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the parser calls it so
    match = _INLINE.match(state.src, state.pos, state.posMax)
    tex = match["double"] or match["single"] if match else None
    if match is None or not tex:
        return False
    if not silent:
        token = state.push("math_inline_double" if match["double"] else "math_inline", "math", 0)
        token.content, token.markup = tex, "$$" if match["double"] else "$"
    state.pos = match.end()
    return True


def _parse_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001
    """Parse a formula of at most ``_MAX_LINES``: the plug-in's own rule searches to the end of the text each time."""
    return _BLOCK(state, start, min(end, start + _MAX_LINES), silent)


def make_readable(tex: str) -> str:
    if len(tex) > _MAX_TEX:
        return tex
    text = _SPACING.sub(" ", tex)
    text = _COMMAND.sub(lambda match: _SIGNS.get(match[1], match[0]), text)
    for _ in range(_MAX_FRACTIONS):
        before = text
        text = _NAMED.sub(r"\1", text)
        text = _SCRIPT.sub(_write_script, text)
        text = _FRACTION.sub(lambda match: f"{_remove_groups(match[1])}/{_remove_groups(match[2])}", text)
        text = _ROOT.sub(r"√(\1)", text)
        if text == before:
            break
    return _BLANKS.sub(" ", text).strip()


def _remove_groups(text: str) -> str:
    text = text.strip()
    return text if len(text) <= 1 or text.isalnum() else f"({text})"


def _write_script(match: re.Match[str]) -> str:
    inner = match[2] if match[3] is None else match[3]
    table = _UP if match[1] == "^" else _DOWN
    if inner and all(ord(char) in table for char in inner):
        return inner.translate(table)
    return match[0] if match[2] is None else f"{match[1]}({inner})"
