#!/usr/bin/env bash
# pages.sh SOURCE_TREE BUILD: every link of a page leads to a file of this tree and to a heading that is there, paths
# in the text are files, no file names a page that is not, the pages keep to the words of docs/wording.md, and each
# sentence of what the README says roux cannot do has a block in tests/cli/cannot.cli that shows its refusal.
set -euo pipefail
cd "$1"
python3 - <<'EOF'
import pathlib, re, subprocess, sys

listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], capture_output=True,
                        text=True, check=True).stdout.split("\n")
files = [name for name in listed if name and pathlib.Path(name).is_file()]
problems = []


def lines_of(name):
    """Those outside of code blocks, numbered."""
    code = False
    for number, line in enumerate(pathlib.Path(name).read_text().split("\n"), start=1):
        if line.startswith("```"):
            code = not code
        elif not code:
            yield number, line


def anchors(name):
    """As GitHub makes them of headings."""
    titles = [line.lstrip("#").strip() for _, line in lines_of(name) if re.match("#+ ", line)]
    titles = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title).lower() for title in titles]
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles}


# Files that the worked examples make.
examples = set(re.findall(r"^```[a-z]+ (\S+/\S+)$", pathlib.Path("docs/writing-a-component.md").read_text(), re.M))
pages = [name for name in files if name.endswith(".md")]
for page in pages:
    for number, line in lines_of(page):
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
            if re.match("[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            there = pathlib.Path(page).parent / path if path else pathlib.Path(page)
            if not there.exists():
                problems.append(f"{page}:{number}: error: links to {target}, and there is no such file")
            elif anchor and there.suffix == ".md" and anchor not in anchors(there):
                problems.append(f"{page}:{number}: error: links to {target}, and there is no such heading")

# Whole paths in the text (no `<NAME>`, no `*`), and words. The changelog tells what was; one page is generated.
PATH = r"(?<![\w./$-])((?:runner|components|trackers|schemas|recipes|tests|docs)/[\w./-]*)(?![\w./*<>{}$-])"
listed = re.search(r"^```phrases\n(.*?)^```", pathlib.Path("docs/wording.md").read_text(), re.M | re.S).group(1)
PHRASES = r"(?i)\b(" + "|".join(listed.split("\n")[:-1]) + r")\b"
for page in pages:
    if not page.startswith(("docs/", "README", "CONTRIBUTING")) or page == "docs/accelerate-options.md":
        continue
    for number, line in lines_of(page):
        for path in (path for span in re.findall(r"`([^`]*)`", line) for path in re.findall(PATH, span)):
            if not pathlib.Path(path).exists() and path not in examples:
                problems.append(f"{page}:{number}: error: names {path}, and there is no such file")
        for phrase in re.findall(PHRASES, re.sub(r"`[^`]*`", "", line)):
            if page != "docs/wording.md":
                problems.append(f'{page}:{number}: error: says "{phrase}": docs/wording.md has a better word')

for name in files:
    if pathlib.Path(name).suffix not in (".h", ".cpp", ".inl", ".cmake", ".sh", ".py", ".txt", ".json", ".yaml"):
        continue
    if name.startswith("recipes/smoke/data/"):
        continue  # texts that are trained on
    for number, line in enumerate(pathlib.Path(name).read_text(errors="replace").split("\n"), start=1):
        for page in re.findall(r"\bdocs/[\w/.-]*\w", line):
            if not pathlib.Path(page).exists() and not list(pathlib.Path(".").glob(page + "*")):
                problems.append(f"{name}:{number}: error: names {page}, and there is no such page")



def sentences(text):
    """Without links and line breaks. A sentence begins with a capital or with code."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(text.split()))
    return re.split(r"(?<=[.!?]) (?=[A-Z`*])", text)


def check_limits(readme, cases):
    """The README's list and tests/cli/cannot.cli have the same sentences, each with a block that is refused."""
    found = re.search(r"^## What it cannot do yet\n\n((?:[-*] .*\n|  .*\n)+)\n", readme, re.M)
    if not found:
        yield 'README.md: error: has no list under "## What it cannot do yet"'
        return
    listed = [one for item in re.split(r"^[-*] ", found.group(1), flags=re.M)[1:] for one in sentences(item)]
    shown = {}
    parts = re.split(r"^# README: ((?:.*\n)(?:# .*\n)*)", cases, flags=re.M)
    for said, blocks in zip(parts[1::2], parts[2::2]):
        shown[" ".join(said.replace("\n# ", "\n").split())] = re.findall(r"^EXIT: (\d+)$", blocks, re.M)
    for one in listed:
        if one not in shown:
            yield f'README.md: error: no block of tests/cli/cannot.cli shows that roux cannot do this: "{one}"'
    for said, exits in shown.items():
        if said not in listed:
            yield f'tests/cli/cannot.cli: error: the README does not say "{said}"'
        if not exits or "0" in exits:
            yield f'tests/cli/cannot.cli: error: roux does not refuse what the README says it cannot do: "{said}"'


problems += check_limits(pathlib.Path("README.md").read_text(), pathlib.Path("tests/cli/cannot.cli").read_text())

print("\n".join(problems + [f"{len(pages)} pages, {len(problems)} problems"]))
sys.exit(bool(problems))
EOF
