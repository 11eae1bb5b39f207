"""Users read plain English: words and phrases that no engineer would use stay out of messages, pages and docs."""

from __future__ import annotations

import re

from tests.user_texts import Text, user_texts

TEXTS = tuple(user_texts())

RETIRED = {  # what to look for, and what to write instead
    r"\bmend(s|ed|ing)?\b": "fix",
    r"\bborne\b|\bto bear\b": "allowed, tolerated",
    r"\bby whom\b": "sender unknown, by an unknown user",
    r"\bcalled so\b|nothing is called|\bcalled as\b": "there is no … named …",
    r"\blet(s|ting)? go of\b": "release",
    r"\b(is|are|be|been|was|were) told\b(?! to)|\btold (of|as)\b|what was told": "is notified, reported",
    r"\btells? (none|neither|that it|when it|how it|more\b)|tells\.?$": "says, reports; or what to run to see it",
    r"\banew\b": "again",
    r"\bst(ands?|ood|anding) still\b": "is idle, has stopped",
    r"left no word|without a word|ended with no word": "wrote no end record",
    r"\bbad ends?\b": "restarts without progress",
    r"\bshall\b": "must, will",
    r"\bgets on\b": "continues",
    r"(?<!there )\b(is|are) none\b(?! of)": "is not a valid …",
    r"\bno [a-z]+ at all\b|\bnot at all\b": "never, no",
    r"\bseldom\b": "less often",
    r"\bat work\b": "running",
    r"(?<!which )\bhas gone\b|\bhave gone\b": "is gone, ended",
    r"\bor the like\b|\band the like\b": "and similar",
    r"\bof before\b": "older, earlier",
    r"\bpass(es|ed|ing)? over\b|\bpassed over\b": "skip, ignore",
    r"\bhow (it|they|a|an|the|its) ?[a-z]* stands?\b|\bas (it|they) stands?\b|\bstands for it\b|\bno longer stand\b": "status, as is",
    r"\bit is said\b|\bsaid once\b|\bwhich is said\b|\bas said\b|unless said\b": "reported, printed; default: …",
    r"\b(came|became|become) of\b": "happened to",
    r"\bin line before\b": "ahead in the queue",
    r"\ba fault of (Onward|ours)": "internal error",
    r"\bopens nothing\b|\bends nothing\b": "say what it does instead",
    r"\bto be known\b|\bis not known (here|yet)\b|\bknown here\b": "is unknown, not supported",
    r"\b(is|was|are|were|be) carried\b|\blet the code be\b": "copied",
    r"\bso manieth\b|\bfor so long\b|\bso many (days|steps|seconds)\b": "every Nth, this many",
    r"(?<!there )(?<!where )\bis no (?!longer|more|less|other|earlier|later|better|admin)[a-z]+": "is not a …",
    r"\bby now\b": "meanwhile, already",
    r"\bwithout (its|an) end\b": "unclosed; without expiry",
    r"\bgo(es)? on\b": "continues",
    r"\bof others\b|\bsomebody else's?\b": "another user's",
    r"\bis to be\b|\bare to be\b": "must be, will be",
    r"\bseen from\b": "relative to, as seen by",
    r"\bthe (higher|lower|greater) goes\b": "higher runs first",
    r"\bbeside the jobs\b|\bin silence\b": "say it plainly",
    r"\btaken (for|back)\b|\btakes? [a-z ]+ away\b": "counts as; cancelled; removed",
    r"\bhold(s|ing)? .{1,40} against\b|\bheld against\b|\bhold it to\b|\bless A\b": "compare with",
    r"\bone after the other goes\b": "one at a time",
    r"\blook(s|ed)? after\b|\blooked-after\b": "watch, maintain",
    r"\basked after\b|\basks after\b": "looked up",
    r"\bis the one's\b": "belongs to",
    r"\bgive (it|a request) up\b|\bis given up\b": "cancel",
    r"\bfrom outside\b": "stdin",
    r"\bmeans nothing to\b": "does not apply to",
    r"\bas short as can be\b|\bas (it|they) must be\b": "as short as possible",
    r"\bmade ready\b|\bmak(e|es|ing) ready\b": "prepared, preparation",
    r"\blives? (leg|another leg)\b": "runs leg …",
    r"\bcarr(y|ies|ied|ying) over\b": "copy, publish, salvage",
    r"\b(is|are|was) tried again\b": "is retried",
    r"\blies (in|on|under)\b": "is in",
    r"\bto the letter\b": "exactly",
    r"\bat most so many\b": "the most to return",
    r"\bof the (page|answer) before\b": "of the previous …",
    r"\bhalf a character\b|\bhalves of characters\b": "an incomplete character",
    r"\bfound no place\b": "could not be queued",
    r"\bno sign of\b": "no …",
    r"\bwent away under\b": "was lost during",
    r"\bbroke off\b": "was interrupted",
    r"\bin circles\b": "in a loop",
    r"\bone's own\b|\bfor people\b": "your own; human-readable",
    r"\bthere is none of (this|that) name\b": "unknown",
    r"\bno word for\b": "does not support",
    r"\blets? it go\b": "releases it",
    r"\bmore such\b": "more like these",
    r"\bknown again\b": "recognized",
    r"\bsteps that stay\b": "useful time",
    r"\bin the making\b": "being written",
    r"\bare two things\b": "exclude each other",
    r"\bfallen silent\b": "stopped answering",
    r"\ba meaning of its own\b": "is reserved",
    r"\b(not to|cannot) be had\b": "is not available",
    r"\bwith commas between\b": "separated by commas",
    r"\b(is|are) like (that|this)\b|\bcalled like\b": "matches",
    r"^leave (it|them)$": "cancel",
    r"\bnow and then\b": "regularly, sometimes",
    r"\btorn\b": "incomplete",
    r"\bsecond li(fe|ves)\b": "a restarted job",
    r"\bnot begun\b": "not started",
    r"\b(one|two|pair) an? (leg|job|node|step)\b": "one per leg",
}
PATTERN = re.compile("|".join(f"(?:{one})" for one in RETIRED), re.IGNORECASE)


def retired_words(text: str) -> list[str]:
    return [found[0] for found in PATTERN.finditer(re.sub(r"\$?\{[^{}]*\}", "", text))]


def shown(text: Text) -> str:
    return f"{text.path}:{text.line}: {', '.join(retired_words(text.text))}: {text.text[:120]}"


def test_no_text_uses_a_retired_word() -> None:
    found = [text for text in TEXTS if retired_words(text.text)]
    assert not found, "write it as an engineer would say it:\n" + "\n".join(map(shown, found))


def test_the_texts_of_code_page_and_docs_are_all_collected() -> None:
    paths = {text.path for text in TEXTS}
    assert {"src/onward/errors.py", "src/onward/cli/runs/show.py", "web/src/app.tsx", "docs/concepts.md", "CHANGELOG.md"} - paths == {
        "src/onward/errors.py"
    }


def test_a_retired_word_is_found_in_a_sentence_but_not_in_what_is_filled_in() -> None:
    assert retired_words("look at it, or mend it") == ["mend"]
    assert retired_words("the run {mend} is finished") == []
