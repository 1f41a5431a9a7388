"""Emoji whose look comes from two signs: where the unseen one of them changes what is drawn, it hides nothing.

U+FE0F asks for the picture of a sign that is drawn as text without it. Behind any other sign, also behind an emoji that
is a picture anyway, it changes nothing. U+200D joins emoji into one, but whether anything of that is to be seen depends
on who draws them: a terminal shows a family and its members alike. So it isn't told apart here.
"""

import re

_DRAWN_AS_TEXT = (
    "\xa9\xae\u203c\u2049\u2122\u2139\u2194-\u2199\u21a9-\u21aa\u2328\u23cf\u23ed-\u23ef\u23f1-\u23f2"
    "\u23f8-\u23fa\u24c2\u25aa-\u25ab\u25b6\u25c0\u25fb-\u25fc\u2600-\u2604\u260e\u2611\u2618\u261d\u2620"
    "\u2622-\u2623\u2626\u262a\u262e-\u262f\u2638-\u263a\u2640\u2642\u265f-\u2660\u2663\u2665-\u2666\u2668\u267b"
    "\u267e\u2692\u2694-\u2697\u2699\u269b-\u269c\u26a0\u26a7\u26b0-\u26b1\u26c8\u26cf\u26d1\u26d3\u26e9"
    "\u26f0-\u26f1\u26f4\u26f7-\u26f9\u2702\u2708-\u2709\u270c-\u270d\u270f\u2712\u2714\u2716\u271d\u2721"
    "\u2733-\u2734\u2744\u2747\u2763-\u2764\u27a1\u2934-\u2935\u2b05-\u2b07\u3030\u303d\u3297\u3299"
    "\U0001f170-\U0001f171\U0001f17e-\U0001f17f\U0001f202\U0001f237\U0001f321\U0001f324-\U0001f32c\U0001f336"
    "\U0001f37d\U0001f396-\U0001f397\U0001f399-\U0001f39b\U0001f39e-\U0001f39f\U0001f3cb-\U0001f3ce"
    "\U0001f3d4-\U0001f3df\U0001f3f3\U0001f3f5\U0001f3f7\U0001f43f\U0001f441\U0001f4fd\U0001f549-\U0001f54a"
    "\U0001f56f-\U0001f570\U0001f573-\U0001f579\U0001f587\U0001f58a-\U0001f58d\U0001f590\U0001f5a5\U0001f5a8"
    "\U0001f5b1-\U0001f5b2\U0001f5bc\U0001f5c2-\U0001f5c4\U0001f5d1-\U0001f5d3\U0001f5dc-\U0001f5de\U0001f5e1"
    "\U0001f5e3\U0001f5e8\U0001f5ef\U0001f5f3\U0001f5fa\U0001f6cb\U0001f6cd-\U0001f6cf\U0001f6e0-\U0001f6e5"
    "\U0001f6e9\U0001f6f0\U0001f6f3"
)

PICTURES = re.compile(f"[{_DRAWN_AS_TEXT}]\ufe0f|[#*0-9]\ufe0f\u20e3")
"""A sign and the selector that makes it a picture. Source: Unicode 17, emoji-data.txt: Emoji without
Emoji_Presentation; and the key caps of emoji-sequences.txt."""
