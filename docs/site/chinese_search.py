"""The search of the Chinese site, without a dictionary: texts and questions are cut into pairs of characters.

Sphinx cuts Chinese texts with a dictionary when the site is built, but not what a reader types, so that two words
without a blank between them are found nowhere. Pairs are the same on both sides. English words are searched as ever.
"""

import re

from sphinx.search.en import SearchEnglish

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"([{_HAN}]+)|([^\W{_HAN}]+)")


class ChineseSearch(SearchEnglish):
    """The search of ``zh`` sites; by its name, which stays English, the page finds the stemmer of English words."""

    lang = "zh"
    js_splitter_code = rf"""
function splitQuery(query) {{
    const words = [];
    for (const [, han, word] of query.matchAll(/([{_HAN}]+)|((?:(?![{_HAN}])[\p{{L}}\p{{N}}_])+)/gu)) {{
        if (word || han.length === 1) words.push(word || han);
        else for (let at = 0; at < han.length - 1; at++) words.push(han.slice(at, at + 2));
    }}
    return words;
}}
"""

    def split(self, text: str) -> list[str]:
        """Return the words of a text for the index: of Chinese each character and each pair."""
        words = []
        for han, word in _WORD.findall(text):
            words += [word] if word else [*han, *(han[at : at + 2] for at in range(len(han) - 1))]
        return words
