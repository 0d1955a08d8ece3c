"""Compares what roux renders of chat templates with what Transformers does: text, errors, and what an assistant wrote.

usage: templates.py record  SET FOLDER          with jinja2 and Transformers: writes the recorded results
       templates.py compare SET FOLDER PROGRAM  with PROGRAM (build/dev/bin/render_templates): prints what differs
       templates.py speed   SET FOLDER PROGRAM  times both on the same renderings

SET is trl: FOLDER holds the templates that PyPI's trl has in trl/chat_templates (*.jinja); or ollama: FOLDER is npm's
package @huggingface/ollama-utils, unpacked. They are not part of this tree, nor is what they write: recorded are the
first digits of hashes of the texts and of the ranges of `{% generation %}`, or "error", for each template and
conversation. The clock stands still.
"""
import ast
import datetime
import hashlib
import json
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
RECORDED = {"trl": HERE / "templates.json", "ollama": HERE / "templates_ollama.json"}
CASES = pathlib.Path(__file__).resolve().parents[1] / "components/template/recorded/cases.json"
NOW = datetime.datetime(2026, 11, 29, 12, 0, 0)

WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather of a \"city\" <now>.",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "description": "Name, as in Zürich"},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        "days": {"type": "array", "items": {"type": "integer"}}}, "required": ["city"]},
    "return": {"type": "object", "properties": {"degrees": {"type": "number"}}}}}
CLOCK = {"type": "function", "function": {"name": "get_time", "description": "The time.", "parameters": {
    "type": "object", "properties": {}}}}


def said(role, content, **more):
    return {"role": role, "content": content, **more}


def call(name, arguments, number=0):
    return {"id": f"call{number:05d}", "type": "function", "function": {"name": name, "arguments": arguments}}


USER, ANSWER = said("user", "What is 2 + 2?"), said("assistant", "It is 4.")
AGAIN, ANSWER2 = said("user", "And 3 + 3?\n"), said("assistant", " It is\n\n6. ")
SYSTEM = said("system", "You are terse.")
CALLS = said("assistant", "", tool_calls=[call("get_weather", {"city": "Zürich", "days": [1, 2]})])
PARALLEL = said("assistant", "Let me see.", tool_calls=[
    call("get_weather", {"city": "Bern", "unit": "celsius"}, 1), call("get_time", {}, 2)])
RESULT, RESULT2 = said("tool", '{"degrees": 21.5}', name="get_weather", tool_call_id="call00001"), said(
    "tool", "12:00", name="get_time", tool_call_id="call00002")
DONE = said("assistant", "It is warm: 21.5 °C.")
THOUGHT = said("assistant", "The answer is 4.", reasoning_content="Two and two.\nFour.")
INLINE = said("assistant", "<think>\nTwo and two.\n</think>\n\nThe answer is 4.")
PARTS = said("user", [{"type": "text", "text": "Look: "}, {"type": "image"}, {"type": "text", "text": "what is it?"}])

# What is given to apply_chat_template.
CONVERSATIONS = {
    "one_turn": {"messages": [USER, ANSWER]},
    "two_turns": {"messages": [USER, ANSWER, AGAIN, ANSWER2]},
    "system": {"messages": [SYSTEM, USER, ANSWER]},
    "system_two_turns": {"messages": [SYSTEM, USER, ANSWER, AGAIN, ANSWER2]},
    "prompt": {"messages": [USER], "add_generation_prompt": True},
    "prompt_after_turn": {"messages": [SYSTEM, USER, ANSWER, AGAIN], "add_generation_prompt": True},
    "thinking": {"messages": [USER, THOUGHT]},
    "thinking_two_turns": {"messages": [USER, THOUGHT, AGAIN, {**ANSWER2, "reasoning_content": "Six."}]},
    "thinking_inline": {"messages": [SYSTEM, USER, INLINE, AGAIN, ANSWER2]},
    "thinking_off": {"messages": [USER], "add_generation_prompt": True, "variables": {"enable_thinking": False}},
    "thinking_on": {"messages": [USER], "add_generation_prompt": True, "variables": {"enable_thinking": True}},
    "thinking_called": {"messages": [USER, {**THOUGHT, "reasoning_content": None, "thinking": "Hm."}, AGAIN, ANSWER2]},
    "tools": {"messages": [USER], "tools": [WEATHER], "add_generation_prompt": True},
    "tools_system": {"messages": [SYSTEM, USER, ANSWER], "tools": [WEATHER, CLOCK]},
    "call": {"messages": [USER, CALLS, RESULT, DONE], "tools": [WEATHER]},
    "call_open": {"messages": [SYSTEM, USER, CALLS, RESULT], "tools": [WEATHER], "add_generation_prompt": True},
    "parallel_calls": {"messages": [USER, PARALLEL, RESULT, RESULT2, DONE], "tools": [WEATHER, CLOCK]},
    "call_then_turn": {"messages": [USER, CALLS, RESULT, DONE, AGAIN, ANSWER2], "tools": [WEATHER]},
    "call_thinking": {"messages": [USER, {**CALLS, "reasoning_content": "I need it."}, RESULT, DONE],
                      "tools": [WEATHER]},
    "call_text_arguments": {"messages": [USER, said("assistant", None, tool_calls=[
        call("get_weather", '{"city": "Basel"}', 3)]), RESULT, DONE], "tools": [WEATHER]},
    "empty_content": {"messages": [USER, said("assistant", ""), AGAIN, ANSWER2]},
    "null_content": {"messages": [USER, said("assistant", None), AGAIN, ANSWER2]},
    "several_systems": {"messages": [SYSTEM, SYSTEM, USER, ANSWER, SYSTEM, AGAIN, ANSWER2]},
    "assistant_first": {"messages": [ANSWER, USER, ANSWER2]},
    "user_twice": {"messages": [USER, AGAIN, ANSWER]},
    "assistant_twice": {"messages": [USER, ANSWER, ANSWER2]},
    "other_role": {"messages": [said("critic", "Hm."), USER, ANSWER]},
    "developer": {"messages": [said("developer", "Be kind."), USER, ANSWER]},
    "parts": {"messages": [PARTS, said("assistant", [{"type": "text", "text": "A cat."}])]},
    "nothing": {"messages": [], "add_generation_prompt": True},
    "unicode": {"messages": [said("user", "  \u00e4\u2028\U0001F600 {{ x }} <|im_end|> "), said("assistant", "日本\t")]},
}
# Each turn of the assistant is an answer of its own, in every template that accepts the chat.
EVERY_TURN = ("one_turn", "two_turns", "system", "system_two_turns", "thinking", "thinking_two_turns",
              "thinking_inline", "thinking_called")
# They judge a conversation, and write its messages outside of a loop over them, or none: nothing there can be learnt.
JUDGES = ("granite3-guardian", "llama-guard3", "shieldgemma")
VARIABLES = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}


def templates(which, folder):
    """Name and source of each."""
    if which == "trl":
        for path in sorted(pathlib.Path(folder).glob("*.jinja")):
            yield path.stem, path.read_text(encoding="utf-8")
        return
    source, number, model = (pathlib.Path(folder) / "src/chat-template-automap.ts").read_text(encoding="utf-8"), 0, ""
    for line in source.split("\n"):
        key, _, value = line.strip().partition(": ")
        if key == "model":
            number, model = number + 1, ast.literal_eval(value.rstrip(","))
        elif key == "gguf":
            # The escapes of its texts are those of Python, too; some models are there twice.
            yield f"{number} {model}", ast.literal_eval(value.rstrip(","))


def requests(which, folder):
    for template, source in templates(which, folder):
        for name, given in CONVERSATIONS.items():
            variables = {**VARIABLES, **given.get("variables", {})}
            yield template, name, {"source": source, **given, "variables": variables}


def short(text):
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def ranges_text(ranges):
    """Ranges of code points, merged where they meet, as one text."""
    merged = []
    for begin, end in ranges:
        if begin == end:
            continue
        if merged and merged[-1][1] == begin:
            merged[-1][1] = end
        else:
            merged.append([begin, end])
    return json.dumps(merged)


def transformers_module():
    import transformers.utils.chat_template_utils as module

    class Clock(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(*NOW.timetuple()[:6])

    module.datetime = Clock
    return module


def recorded(which, folder):
    module = transformers_module()
    results = {}
    for template, name, request in requests(which, folder):
        messages = module._normalize_chat_messages(request["messages"])
        try:
            texts, ranges = module.render_jinja_template(
                [messages], tools=request.get("tools"), chat_template=request["source"],
                return_assistant_tokens_mask="generation" in request["source"],
                add_generation_prompt=request.get("add_generation_prompt", False), **request["variables"])
            result = short(texts[0]) + (" " + short(ranges_text(ranges[0])) if ranges else "")
        except Exception:  # whatever Jinja2 or Python throws: a template's error is one of roux
            result = "error"
        results.setdefault(template, {})[name] = result
    return results


def ask(program, lines, *arguments):
    done = subprocess.run([program, *arguments], input="".join(json.dumps(line) + "\n" for line in lines),
                          capture_output=True, text=True, encoding="utf-8", check=True)
    return [json.loads(line) for line in done.stdout.split("\n") if line], done.stderr


def with_clock(request):
    return {**request, "now": NOW.strftime("%Y-%m-%d %H:%M:%S")}


def compare(which, folder, program):
    expected = json.loads(RECORDED[which].read_text())
    asked = list(requests(which, folder))
    found = sorted({template for template, _, _ in asked})
    if found != sorted(expected):
        sys.exit(f"{folder} has {len(found)} templates, recorded are {len(expected)}")
    answers, _ = ask(program, [with_clock(request) for _, _, request in asked])
    different = 0
    for (template, name, request), answer in zip(asked, answers, strict=True):
        result = "error"
        if "text" in answer:
            points = [len(answer["text"].encode()[:end].decode()) for piece in answer["generation"] for end in piece]
            ranges = ranges_text(zip(points[::2], points[1::2]))
            result = short(answer["text"]) + (" " + short(ranges) if "generation" in request["source"] else "")
        if result != expected[template][name]:
            different += 1
            print(f"{template}, {name}: expected {expected[template][name]}, got {result} {answer.get('error', '')}")
    different += check_answers(asked, answers)
    print(f"{len(asked)} renderings, {different} differ")
    sys.exit(1 if different else 0)


def parts(answer, key):
    """What the ranges of an answer hold, those that meet as one."""
    data, merged = answer["text"].encode(), []
    for begin, end in answer[key]:
        if merged and merged[-1][1] == begin:
            merged[-1][1] = end
        elif begin < end:
            merged.append([begin, end])
    return [data[begin:end].decode() for begin, end in merged]


def problems_of(request, answer):
    """Each turn of the assistant learns its own text and an end, in order, and nothing of what others wrote."""
    if "learned" not in answer:
        return [answer["learned_error"]]
    learned, rest, problems = parts(answer, "learned"), 0, []
    for message in request["messages"]:
        texts = [message["content"]] if isinstance(message["content"], str) else [
            part.get("text", "") for part in message["content"] or []]
        texts = [text.split("</think>")[-1].strip() for text in texts]
        for text in filter(None, texts):
            if message["role"] == "assistant" and text in answer["text"]:
                found = [i for i in range(rest, len(learned)) if text in learned[i]]
                if found:
                    rest = found[0]
                else:
                    problems.append(f"does not learn {text!r}")
            if message["role"] != "assistant" and any(text in one for one in learned):
                problems.append(f"learns {text!r}")
    prompt = answer["prompt"].strip()
    if prompt and "{% generation" not in request["source"] and any(one.strip().startswith(prompt) for one in learned):
        problems.append(f"learns the prompt {prompt!r}")
    return problems


def is_as_marked(twin, answer):
    """TRL's masks may hold a part of the generation prompt, and leave out white space at the end of a turn."""
    data = answer["text"].encode()
    marked, learned = ({at for begin, end in one for at in range(begin, end)}
                       for one in (twin["generation"], answer["learned"]))

    def runs(places):
        text = "".join(chr(data[at]) if at in places else "\0" for at in range(len(data)))
        return [run.encode("latin-1").decode() for run in text.split("\0") if run]

    return (all(run in answer["prompt"] for run in runs(marked - learned))
            and not any(run.strip() for run in runs(learned - marked)) and bool(learned) == bool(marked))


def check_answers(asked, answers):
    """Of plain templates, also beside the masks of the twin that TRL has for training."""
    by_name = {(template, name): answer for (template, name, _), answer in zip(asked, answers, strict=True)}
    different, twins = 0, 0
    for template, name, request in asked:
        answer = by_name[template, name]
        if "text" not in answer or "add_generation_prompt" in request or any(judge in template for judge in JUDGES):
            continue
        problems = problems_of(request, answer)
        turns = [message for message in request["messages"] if message["role"] == "assistant"]
        if name in EVERY_TURN and "learned" in answer and len(parts(answer, "learned")) != len(turns):
            problems.append(f"has not {len(turns)} answers")
        twin = by_name.get((template + "_training", name), {})
        if twin.get("text") == answer["text"]:
            twins += 1
            if not is_as_marked(twin, answer):
                problems.append(f"TRL marks {parts(twin, 'generation')}")
        if problems:
            different += 1
            print(f"{template}, {name}: {problems} of {answer.get('learned') and parts(answer, 'learned')}")
    print(f"{twins} renderings have the text of a template that marks its answers")
    return different


def record_cases():
    module = transformers_module()
    cases = json.loads(CASES.read_text(encoding="utf-8"))
    for case in cases["cases"]:
        case.pop("text", None)
        try:
            case["text"] = module._compile_jinja_template(case["template"]).render(**cases["variables"])
        except Exception:  # the same
            pass
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases["cases"])
    variables = json.dumps(cases["variables"], ensure_ascii=False)
    CASES.write_text(f'{{"variables": {variables},\n"cases": [\n{lines}\n]}}\n', encoding="utf-8")


def speed(which, folder, program):
    module = transformers_module()
    asked = [request for _, _, request in requests(which, folder)]
    took, works = 0.0, []
    for request in asked:
        template = module._compile_jinja_template(request["source"])
        given = dict(messages=module._alias_reasoning_fields(module._normalize_chat_messages(request["messages"])),
                     tools=request.get("tools"), documents=None,
                     add_generation_prompt=request.get("add_generation_prompt", False), **request["variables"])
        try:
            template.render(**given)
            works.append(request)
        except Exception:  # errors are not what is timed
            continue
        begun = time.perf_counter()
        for _ in range(20):
            template.render(**given)
        took += time.perf_counter() - begun
    _, seconds = ask(program, [with_clock(request) for request in works], "--repeat", "20")
    own = float(seconds)
    print(f"{len(works)} renderings, 20 times: jinja2 {took:.2f} s, roux {own:.2f} s, {took / own:.1f} times as fast")


def main():
    match sys.argv[1:]:
        case ["record", ("trl" | "ollama") as which, folder]:
            record_cases()
            lines = ",\n".join(f'"{name}": {json.dumps(one)}' for name, one in recorded(which, folder).items())
            RECORDED[which].write_text("{" + lines + "}\n")
        case ["compare", ("trl" | "ollama") as which, folder, program]:
            compare(which, folder, program)
        case ["speed", ("trl" | "ollama") as which, folder, program]:
            speed(which, folder, program)
        case _:
            sys.exit(__doc__)


main()
