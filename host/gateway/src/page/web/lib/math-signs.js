// Symbols for formulas, by the names of their TeX commands.

/** Parses `name sign name sign …` into an object. */
function named(text) {
  const words = text.trim().split(/\s+/);
  return Object.fromEntries(words.flatMap((word, at) => (at % 2 ? [] : [[word, words[at + 1]]])));
}

/** Letters and other symbols for values. */
export const LETTERS = named(`
  alpha α beta β gamma γ delta δ epsilon ϵ varepsilon ε zeta ζ eta η theta θ vartheta ϑ iota ι kappa κ lambda λ mu μ nu ν xi ξ omicron ο pi π varpi ϖ
  rho ρ varrho ϱ sigma σ varsigma ς tau τ upsilon υ phi ϕ varphi φ chi χ psi ψ omega ω
  Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π Sigma Σ Upsilon Υ Phi Φ Psi Ψ Omega Ω
  infty ∞ partial ∂ nabla ∇ hbar ℏ ell ℓ Re ℜ Im ℑ wp ℘ aleph ℵ beth ℶ emptyset ∅ varnothing ∅ imath ı jmath ȷ
  forall ∀ exists ∃ nexists ∄ top ⊤ bot ⊥ angle ∠ triangle △ square □ Box □ blacksquare ■ checkmark ✓ degree ° circ ∘ prime ′ dagger † ddagger ‡ star ⋆ ast ∗
  dots … ldots … cdots ⋯ vdots ⋮ ddots ⋱ dotsc … dotsb ⋯ surd √ clubsuit ♣ diamondsuit ♢ heartsuit ♡ spadesuit ♠ sharp ♯ flat ♭ natural ♮ S § P ¶ euro € pounds £`);

/** Operators, relations and arrows; the browser knows their spacing. */
export const RELATIONS = named(`
  times × cdot ⋅ div ÷ pm ± mp ∓ bullet ∙ oplus ⊕ ominus ⊖ otimes ⊗ oslash ⊘ odot ⊙ setminus ∖ wr ≀ amalg ⨿
  le ≤ leq ≤ leqslant ⩽ ge ≥ geq ≥ geqslant ⩾ ne ≠ neq ≠ lt < gt > ll ≪ gg ≫ approx ≈ equiv ≡ sim ∼ simeq ≃ cong ≅ propto ∝ asymp ≍ doteq ≐ triangleq ≜ coloneqq ≔ prec ≺ succ ≻ preceq ⪯ succeq ⪰
  in ∈ notin ∉ ni ∋ subset ⊂ supset ⊃ subseteq ⊆ supseteq ⊇ subsetneq ⊊ supsetneq ⊋ nsubseteq ⊈ cup ∪ cap ∩ sqcup ⊔ sqcap ⊓ uplus ⊎
  neg ¬ lnot ¬ land ∧ wedge ∧ lor ∨ vee ∨ vdash ⊢ dashv ⊣ models ⊨ vDash ⊨ therefore ∴ because ∵ mid ∣ nmid ∤ parallel ∥ perp ⟂ colon :
  to → rightarrow → gets ← leftarrow ← leftrightarrow ↔ Rightarrow ⇒ Leftarrow ⇐ Leftrightarrow ⇔ implies ⟹ impliedby ⟸ iff ⟺ mapsto ↦ longmapsto ⟼ longrightarrow ⟶ longleftarrow ⟵ Longrightarrow ⟹ Longleftarrow ⟸
  Longleftrightarrow ⟺ hookrightarrow ↪ hookleftarrow ↩ rightharpoonup ⇀ rightharpoondown ⇁ rightleftharpoons ⇌ leadsto ⇝ uparrow ↑ downarrow ↓ updownarrow ↕ Uparrow ⇑ Downarrow ⇓ nearrow ↗ searrow ↘ nwarrow ↖ swarrow ↙
  bowtie ⋈ ltimes ⋉ rtimes ⋊ smile ⌣ frown ⌢ lll ⋘ ggg ⋙ lesssim ≲ gtrsim ≳ vartriangle △ triangleleft ◁ triangleright ▷ backslash \\`);

/** Large operators: limits are above and below, those of integrals beside the sign. */
export const BIG = named(`
  sum ∑ prod ∏ coprod ∐ int ∫ iint ∬ iiint ∭ oint ∮ oiint ∯ bigcup ⋃ bigcap ⋂ bigoplus ⨁ bigotimes ⨂ bigodot ⨀ bigvee ⋁ bigwedge ⋀ bigsqcup ⨆ biguplus ⨄`);

export const FUNCTIONS = new Set('sin cos tan cot sec csc sinh cosh tanh coth arcsin arccos arctan log ln lg exp arg dim ker hom deg sgn tr rank'.split(' '));

/** Functions with an argument below. */
export const LIMITS = new Set('lim limsup liminf max min sup inf det gcd Pr argmax argmin'.split(' '));

/** Spaces, in em. */
export const SPACES = { ',': 0.1667, ':': 0.2222, '>': 0.2222, ';': 0.2778, '!': -0.1667, ' ': 0.3333, quad: 1, qquad: 2, enspace: 0.5, thinspace: 0.1667, space: 0.3333 };

/** Symbols with `\not`, if Unicode has one. */
export const NOT = { '=': '≠', '∈': '∉', '∋': '∌', '<': '≮', '>': '≯', '≤': '≰', '≥': '≱', '⊂': '⊄', '⊆': '⊈', '≡': '≢', '∼': '≁', '≈': '≉', '∃': '∄', '∣': '∤', '∥': '∦' };

/** First code points of alphabets: A, a and 0. */
const ALPHABETS = { bb: [0x1d538, 0x1d552, 0x1d7d8], bf: [0x1d400, 0x1d41a, 0x1d7ce], cal: [0x1d49c, 0x1d4b6], frak: [0x1d504, 0x1d51e], sf: [0x1d5a0, 0x1d5ba, 0x1d7e2], tt: [0x1d670, 0x1d68a, 0x1d7f6] };

/** Letters that are outside of their alphabet's block in Unicode. */
const OLDER = {
  bb: { C: 'ℂ', H: 'ℍ', N: 'ℕ', P: 'ℙ', Q: 'ℚ', R: 'ℝ', Z: 'ℤ' },
  cal: { B: 'ℬ', E: 'ℰ', F: 'ℱ', H: 'ℋ', I: 'ℐ', L: 'ℒ', M: 'ℳ', R: 'ℛ', e: 'ℯ', g: 'ℊ', o: 'ℴ' },
  frak: { C: 'ℭ', H: 'ℌ', I: 'ℑ', R: 'ℜ', Z: 'ℨ' },
};

/** Bold Greek: Α and α. */
const BOLD_GREEK = [[0x391, 0x3a9, 0x1d6a8], [0x3b1, 0x3c9, 0x1d6c2]];

/** Returns a letter or digit in another alphabet; other characters stay unchanged. */
export function alphabet(style, letter) {
  const older = OLDER[style]?.[letter];
  if (older) return older;
  const code = letter.codePointAt(0);
  const [upper, lower, digit] = ALPHABETS[style] ?? [];
  if (upper && /[A-Z]/.test(letter)) return String.fromCodePoint(upper + code - 65);
  if (lower && /[a-z]/.test(letter)) return String.fromCodePoint(lower + code - 97);
  if (digit && /\d/.test(letter)) return String.fromCodePoint(digit + code - 48);
  const greek = style === 'bf' && BOLD_GREEK.find(([first, last]) => code >= first && code <= last);
  return greek ? String.fromCodePoint(greek[2] + code - greek[0]) : letter;
}
