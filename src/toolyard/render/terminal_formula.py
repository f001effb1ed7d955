"""TeX as a line one can read: ``\\frac{a}{b} \\times x^2`` as ``a/b × x²``. Unknown commands stay as they are."""

import re

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
