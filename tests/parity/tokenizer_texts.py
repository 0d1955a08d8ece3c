"""Compares roux's tokenizers with the libraries, and records what tests_fast compares.

usage: tokenizer_texts.py compare BENCH TOKENIZER...   ids, offsets and decoded texts of 10,000 texts
       tokenizer_texts.py speed BENCH TOKENIZER...     the time of encode_batch, in turns, with 1 and 2 threads
       tokenizer_texts.py long BENCH TOKENIZER...      the time of one word of 100 kB and of 1 MB
       tokenizer_texts.py train FOLDER                 writes small tokenizers of each form
       tokenizer_texts.py record FOLDER INTO           writes texts.json, json/NAME.expected of each tokenizer of FOLDER,
                                                       and model/NAME.expected

BENCH is the program bench_tokenizers, TOKENIZER a tokenizer.json, or a *.model of SentencePiece. The texts are the same
each time; their characters are those that Unicode 10 assigns, because the libraries know newer versions to different
extents (the normal forms of `tokenizers` those of Unicode 9 and its punctuation that of Unicode 8, so the few combining marks
of Unicode 10 and the punctuation of both are left out). Needs `tokenizers`, and `sentencepiece` with
`protobuf` for its models.
"""

import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SEED = 20261127
COUNT = 10_000

WORDS = """the of and to in is was he for it with as his on be at by had not are but from or have an they which one you
were her all she there would their we him been has when who will more no if out so said what up its about into than them
can only other new some could time these two may then do first any my now such like our over man me even most made after
also did many before must through back years where much your way well down should because each just those people how too
little state good very make world still own see men work long get here between both life being under never day same
another know while last might us great old year off come since against go came right used take three""".split()
MULTILINGUAL = ["Zażółć gęślą jaźń", "Съешь же ещё этих мягких французских булок", "いろはにほへとちりぬるを",
                "敏捷的棕色狐狸跳过了懒狗", "키스의 고유조건은 입술끼리 만나야 하고", "نص حكيم له سر قاطع وذو شأن عظيم",
                "דג סקרן שט בים מאוכזב", "ऋषियों को सताने वाले दुष्ट राक्षसों", "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า",
                "Falsches Üben von Xylophonmusik quält jeden größeren Zwerg", "İstanbul'da ılık bir gün",
                "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία", "e\u0301a\u0308o\u0323\u0302 \u1e9b\u0323 \ufb01 \u212b \u2126",
                "\u1100\u1161\u11a8 \ud55c\uae00 \u0b95\u0bca \u09c7\u09be"]
EMOJI = ["😀", "👍🏽", "👨‍👩‍👧‍👦", "🏳️‍🌈", "❤️", "🇩🇪🇫🇷", "1️⃣", "☕", "🤖🔥", "\u200d", "\ufe0f"]
SPACES = [" ", "  ", "    ", "\n", "\n\n", "\r\n", "\t", "\t\t", "\u00a0", "\u2003", "\u3000", "\u2028", "\x0b", "\x85",
          "\u200b", "\ufeff", "\u1680", " \n ", "\n \n", " \t\n"]
CODE = ["def f(x):\n    return x**2 + 1\n", "for (int i = 0; i < n; ++i) { a[i] += b[i]; }", "<div class=\"a\">&amp;</div>",
        "SELECT * FROM t WHERE id=42;", "{\"key\": [1, 2.5e-3, null]}", "x = y // z  # comment", "#include <vector>\n",
        "https://example.org/a/b?c=d&e=%20#f", "a_b_c camelCase CONST_9", "\\begin{align} x &= y \\\\ \\end{align}",
        "if [ -f \"$f\" ]; then\n\tcat \"$f\" | wc -l\nfi\n", "0x1F 1_000 3.14159 1e10 12345678901234567890"]
CONTRACTIONS = ["don't", "I'll", "WE'RE", "it's", "IT'S", "they'Ve", "I'm", "'d", "'S", "'\u017f", "'ll'll", "rock'n'roll",
                "''s", " 's", "x'", "O'Neil's"]
SPECIAL = ["<s>", "</s>", "<unk>", "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|eot_id|>",
           "<|start_header_id|>user<|end_header_id|>", "<think>", "<0x41>", "<0xE2>", "▁", "▁▁", "Ġ", "<mask>", "[PAD]"]


def characters():
    ranges = []
    for line in (HERE / "unicode10.txt").read_text().splitlines():
        if not line.startswith("#"):
            ranges += [tuple(int(end, 16) for end in part.split("-")) for part in line.split()]
    return ranges


def make_texts(count=COUNT, seed=SEED):
    draw = random.Random(seed)
    ranges = characters()

    def any_character():
        first, last = draw.choice(ranges)
        return chr(draw.randint(first, last))

    def any_of_all():
        while True:
            at = draw.randint(0, 0x2FFFF)
            for first, last in ranges:
                if first <= at <= last:
                    return chr(at)

    def word():
        return draw.choice(WORDS) if draw.random() < 0.8 else draw.choice(WORDS).capitalize()

    def sentence():
        return " ".join(word() for _ in range(draw.randint(1, 25))) + draw.choice([".", "", "!", "?", "...", ";", ","])

    def run():
        return draw.choice([" ", "a", "=", "\n", "é", "😀", "0", "-", "\t", "▁", "ab", "中", "!?", " \n", "'", "\u0301"]) * \
            draw.randint(2, 120)

    def letters():
        return "".join(chr(draw.randint(97, 122)) for _ in range(draw.randint(1, 30)))

    makers = [
        (30, sentence), (8, lambda: draw.choice(MULTILINGUAL)), (6, lambda: draw.choice(EMOJI)),
        (10, lambda: draw.choice(SPACES)), (8, lambda: draw.choice(CODE)), (6, lambda: draw.choice(CONTRACTIONS)),
        (4, lambda: draw.choice(SPECIAL)), (4, run), (6, letters),
        (8, lambda: "".join(any_character() for _ in range(draw.randint(1, 12)))),
        (4, lambda: "".join(any_of_all() for _ in range(draw.randint(1, 12)))),
        (4, lambda: str(draw.randint(0, 10 ** draw.randint(1, 20)))),
        (4, lambda: "".join(chr(draw.randint(1, 127)) for _ in range(draw.randint(1, 12)))),
        (4, lambda: "".join(chr(draw.randint(0xA0, 0x24F)) for _ in range(draw.randint(1, 12)))),
        (2, lambda: draw.choice(WORDS) + any_character() + draw.choice(WORDS)),
    ]
    weights = [weight for weight, _ in makers]
    texts = ["", " ", "  ", "\n", "a", "é", "😀", " a", "a ", "\x00"]
    while len(texts) < count:
        parts = draw.choices(makers, weights, k=draw.randint(1, 8))
        between = draw.choice(["", " "])
        texts.append(between.join(make() for _, make in parts))
    return texts


def write_texts(texts, path):
    with open(path, "wb") as file:
        for text in texts:
            data = text.encode()
            file.write(struct.pack("<I", len(data)) + data)


def of_library(path, texts):
    """(ids, offsets, decoded) of each text."""
    if str(path).endswith(".model"):
        return of_sentencepiece(path, texts)
    import tokenizers
    tokenizer = tokenizers.Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    encodings = tokenizer.encode_batch(texts)
    return [(e.ids, e.offsets, tokenizer.decode(e.ids, skip_special_tokens=True)) for e in encodings]


def of_sentencepiece(path, texts):
    import sentencepiece
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    results = []
    for text in texts:
        pieces = processor.encode(text, return_type="proto").pieces
        ids = [piece.id for piece in pieces]
        characters = [0]  # before each byte
        for character in text:
            characters += [characters[-1]] * (len(character.encode()) - 1) + [characters[-1] + 1]
        offsets = [(characters[piece.begin], characters[piece.end]) for piece in pieces]
        results.append((ids, offsets, processor.decode(ids)))
    return results


def of_roux(bench, path, texts, *flags):
    with tempfile.TemporaryDirectory() as folder:
        write_texts(texts, f"{folder}/texts")
        subprocess.run([bench, path, f"{folder}/texts", "--output", f"{folder}/out", *flags], check=True,
                       stdout=subprocess.DEVNULL)
        data = pathlib.Path(f"{folder}/out").read_bytes()
    results, at = [], 0
    for _ in texts:
        (count,) = struct.unpack_from("<I", data, at)
        ids = list(struct.unpack_from(f"<{count}i", data, at + 4))
        at += 4 + 4 * count
        numbers = struct.unpack_from(f"<{2 * count}I", data, at)
        offsets = list(zip(numbers[::2], numbers[1::2]))
        at += 8 * count
        (size,) = struct.unpack_from("<I", data, at)
        results.append((ids, offsets, data[at + 4:at + 4 + size].decode()))
        at += 4 + size
    return results


def compare(bench, *paths, rows=None):
    texts = make_texts()
    failed = False
    for path in paths:
        expected, found = of_library(path, texts), of_roux(bench, path, texts)
        wrong = [[], [], []]
        for i, (a, b) in enumerate(zip(expected, found)):
            for part in range(3):
                if list(a[part]) != list(b[part]):
                    wrong[part].append(i)
        tokens = sum(len(ids) for ids, _, _ in expected)
        if rows is not None:
            rows.append({"texts": len(texts), "tokens": tokens, "different": [len(part) for part in wrong]})
        print(f"{path}: {len(texts)} texts, {tokens} tokens; different ids in {len(wrong[0])}, offsets in "
              f"{len(wrong[1])}, decoded text in {len(wrong[2])}")
        for part, name in enumerate(("ids", "offsets", "decoded")):
            for i in sorted(wrong[part], key=lambda i: len(texts[i]))[:3]:
                print(f"  {name} of {texts[i]!r}\n    expected {expected[i][part]!r}\n    found    {found[i][part]!r}")
        failed = failed or any(wrong)
    return failed


def speed(bench, *paths, rounds=5, rows=None):
    import tokenizers
    texts = make_texts()
    size = sum(len(text.encode()) for text in texts)
    for path in paths:
        for threads in (1, 2):
            times = {"library": [], "library, ids alone": [], "roux": [], "roux, ids alone": []}
            with tempfile.TemporaryDirectory() as folder:
                write_texts(texts, f"{folder}/texts")
                for _ in range(rounds):
                    code = ("import sys, time, struct, tokenizers\n"
                            "data = open(sys.argv[2], 'rb').read(); texts = []; at = 0\n"
                            "while at < len(data):\n"
                            "    n, = struct.unpack_from('<I', data, at); texts.append(data[at + 4:at + 4 + n].decode());"
                            " at += 4 + n\n"
                            "t = tokenizers.Tokenizer.from_file(sys.argv[1])\n"
                            "for f in (t.encode_batch, t.encode_batch_fast):\n"
                            "    f(texts[:100])\n"
                            "    s = time.perf_counter(); f(texts); print(time.perf_counter() - s)\n")
                    out = subprocess.run([sys.executable, "-c", code, path, f"{folder}/texts"], check=True, text=True,
                                         capture_output=True, env={**__import__("os").environ,
                                                                   "RAYON_NUM_THREADS": str(threads),
                                                                   "TOKENIZERS_PARALLELISM": "true"}).stdout.split()
                    times["library"].append(float(out[0]))
                    times["library, ids alone"].append(float(out[1]))
                    for name, flags in (("roux", []), ("roux, ids alone", ["--ids-only"])):
                        out = subprocess.run([bench, path, f"{folder}/texts", "--threads", str(threads), *flags],
                                             check=True, text=True, capture_output=True).stdout
                        times[name].append(float(out.split()[-1]))
            medians = {name: sorted(values)[len(values) // 2] for name, values in times.items()}
            if rows is not None:
                rows.append({"threads": threads, "bytes": size, "seconds": medians})
            print(f"{path}, {threads} threads, {size} bytes: " +
                  "; ".join(f"{name} {value:.4f} s" for name, value in medians.items()))


def long(bench, *paths):
    """Seconds for a word of 100 kB and one of 1 MB, and how many times as long the second takes."""
    draw = random.Random(SEED)
    letters = "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=1_000_000))
    chinese = "".join(chr(draw.randint(0x4E00, 0x9FA5)) for _ in range(333_333))
    words = {"one letter": "a" * 1_000_000, "letters": letters, "Chinese": chinese, "spaces": " " * 1_000_000,
             "blanks": "\u2581" * 333_333, "marks": "-=" * 500_000}
    for path in paths:
        for name, word in words.items():
            times = []
            for part in (word[:len(word) // 10], word):
                with tempfile.TemporaryDirectory() as folder:
                    write_texts([part], f"{folder}/texts")
                    out = subprocess.run([bench, path, f"{folder}/texts", "--rounds", "5"], check=True, text=True,
                                         capture_output=True).stdout
                times.append(min(float(line.split()[1]) for line in out.splitlines()[1:]))
            print(f"{path}, {name}: {times[0]:.4f} s, {times[1]:.4f} s, {times[1] / times[0]:.1f} times")


LLAMA3 = ("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|"
          "\\s+(?!\\S)|\\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")


def forms(charsmap, unigram, unigram_bytes):
    """A tokenizer of each form, and how it is trained: None when it is made of one of SentencePiece's models."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    alphabet = pre_tokenizers.ByteLevel.alphabet()

    def trainer(size, specials=(), letters=None, **more):
        return trainers.BpeTrainer(vocab_size=size, special_tokens=list(specials), show_progress=False,
                                   initial_alphabet=sorted(alphabet if letters is None else letters), **more)

    def byte_level(normalizer, pre_tokenizer, post_processor, **more):
        tokenizer = Tokenizer(models.BPE(**more))
        if normalizer:
            tokenizer.normalizer = normalizer
        tokenizer.pre_tokenizer = pre_tokenizer
        tokenizer.decoder = decoders.ByteLevel()
        if post_processor:
            tokenizer.post_processor = post_processor
        return tokenizer

    def split(pattern):
        return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])

    gpt2 = byte_level(None, pre_tokenizers.ByteLevel(add_prefix_space=False), processors.ByteLevel(trim_offsets=True))
    yield "gpt2", gpt2, trainer(500, ["<|endoftext|>"]), []

    begin = processors.TemplateProcessing(single="<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>", 0)])
    yield ("llama3", byte_level(None, split(LLAMA3), processors.Sequence([processors.ByteLevel(trim_offsets=False), begin]),
                                ignore_merges=True),
           trainer(700, ["<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>"]), [])

    yield ("qwen2", byte_level(normalizers.NFC(), split(QWEN2), processors.ByteLevel(trim_offsets=False)),
           trainer(600, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]),
           [AddedToken("<think>", normalized=False), AddedToken("</think>", normalized=False)])

    # As that of SmolLM2 it lacks some bytes, which are left out of the text.
    digits = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                      pre_tokenizers.ByteLevel(add_prefix_space=False)])
    yield ("smollm2", byte_level(None, digits, None),
           trainer(500, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], letters=sorted(alphabet)[:-60],
                   limit_alphabet=200), [])

    llama2 = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    llama2.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    llama2.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                        decoders.Strip(" ", 1, 0)])
    llama2.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    yield ("llama2", llama2, trainer(800, ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)],
                                     letters=[], limit_alphabet=120), [])

    # What none of the families has, in one.
    mixed = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    mixed.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase(), normalizers.Strip(),
                                             normalizers.Replace(Regex("[\\u0300-\\u036f]+"), ""),
                                             normalizers.Replace("''", '"')])
    mixed.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Metaspace(prepend_scheme="first"), pre_tokenizers.Punctuation("merged_with_next"),
        pre_tokenizers.Split(Regex("(?<=[a-z])\\d+"), "merged_with_previous"),
        pre_tokenizers.Split("\n", "contiguous"), pre_tokenizers.Split(Regex("[^\\x00-\\x08]+"), "removed", invert=True)])
    mixed.decoder = decoders.Metaspace()
    mixed.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 1), trim_offsets=True, add_prefix_space=True)
    yield ("mixed", mixed, trainer(600, ["<unk>", "<s>", "</s>"], letters=[], limit_alphabet=150),
           [AddedToken("<mask>", lstrip=True, rstrip=True, normalized=False), AddedToken("THE", single_word=True),
            AddedToken("state", single_word=True, lstrip=True, normalized=False), AddedToken("e\u0301a", rstrip=True)])

    # Whole words with a suffix, and nothing for what is unknown.
    suffix = Tokenizer(models.BPE(end_of_word_suffix="</w>", unk_token="<unk>"))
    suffix.normalizer = normalizers.NFD()
    suffix.pre_tokenizer = pre_tokenizers.Whitespace()
    suffix.decoder = decoders.BPEDecoder()
    yield ("suffix", suffix, trainer(500, ["<unk>"], letters=[], limit_alphabet=100, end_of_word_suffix="</w>"), [])

    bert = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    bert.normalizer = normalizers.BertNormalizer()
    bert.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    bert.decoder = decoders.WordPiece()
    bert.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    yield ("bert", bert, trainers.WordPieceTrainer(vocab_size=700, special_tokens=names, limit_alphabet=150,
                                                   show_progress=False), [])

    # Accents and capitals stay, a word is short, and what continues one begins with another prefix.
    cased = Tokenizer(models.WordPiece(unk_token="<unk>", max_input_chars_per_word=12, continuing_subword_prefix="@"))
    cased.normalizer = normalizers.BertNormalizer(clean_text=False, strip_accents=True, lowercase=False)
    cased.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    cased.decoder = decoders.WordPiece(prefix="@", cleanup=False)
    cased.post_processor = processors.BertProcessing(("</s>", 2), ("<s>", 1))
    yield ("cased", cased, trainers.WordPieceTrainer(vocab_size=500, special_tokens=["<unk>", "<s>", "</s>"],
                                                     limit_alphabet=120, show_progress=False,
                                                     continuing_subword_prefix="@"), [])

    # As Transformers converts SentencePiece's models.
    t5 = Tokenizer(models.Unigram(*unigram))
    t5.normalizer = normalizers.Sequence([normalizers.Precompiled(charsmap), normalizers.Replace(Regex(" {2,}"), " ")])
    t5.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    t5.decoder = decoders.Metaspace()
    t5.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>",
                                                      special_tokens=[("</s>", 2)])
    yield "t5", t5, None, [AddedToken(name, special=True, normalized=False) for name in ("<unk>", "<s>", "</s>")]

    # What is unknown becomes bytes, all of which stand for all of it.
    albert = Tokenizer(models.Unigram(*unigram_bytes, byte_fallback=True))
    albert.normalizer = normalizers.Sequence([
        normalizers.Nmt(), normalizers.Replace("``", '"'), normalizers.NFKD(), normalizers.StripAccents(),
        normalizers.Lowercase(), normalizers.Strip(left=False), normalizers.Precompiled(charsmap)])
    albert.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace(split=False), pre_tokenizers.Digits(True)])
    albert.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    yield "albert", albert, None, [AddedToken("<mask>", lstrip=True)]


def train_sentencepiece(folder, name, texts, model_type="bpe", **more):
    import sentencepiece
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_prefix=str(folder / name), model_type=model_type, vocab_size=900,
        num_threads=1, character_coverage=0.98, minloglevel=2, **more)
    (folder / f"{name}.vocab").unlink()


def train(folder):
    folder = pathlib.Path(folder)
    texts = make_texts(3000, seed=1)
    lines = [text for text in texts if text.strip() and max(text) < "\u0180"]
    train_sentencepieces(folder, lines)
    from sentencepiece import sentencepiece_model_pb2
    default, *unigrams = (sentencepiece_model_pb2.ModelProto.FromString((folder / f"{name}.model").read_bytes())
                          for name in ("default", "unigram", "unigram_bytes"))
    vocabularies = [([(piece.piece, piece.score) for piece in one.pieces], one.trainer_spec.unk_id) for one in unigrams]
    for name, tokenizer, trainer, added in forms(default.normalizer_spec.precompiled_charsmap, *vocabularies):
        if trainer:
            tokenizer.train_from_iterator(texts, trainer)
        if added:
            tokenizer.add_tokens(added)
        content = json.loads(tokenizer.to_str())
        content["added_tokens"] = [token for token in content["added_tokens"] if not token["content"].startswith("<0x")]
        model = content["model"]
        if name == "llama2":  # the older form
            model["merges"] = [" ".join(pair) for pair in model["merges"]]
        (folder / f"{name}.json").write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n")


def train_sentencepieces(folder, lines):
    # As Llama 2 has it: nothing is normalized. The other one has defaults, user-defined pieces, and some of the rules of
    # nmt_nfkc, whose map would take 240 kB.
    rules = {"\t": " ", "\n": " ", "\r": " ", "\u00a0": " ", "\u3000": " ", "\u200b": " ", "\ufeff": "", 
             "\ufb01": "fi", "\u212b": "\u00c5", "\u2126": "\u03a9", "e\u0301": "\u00e9", "a\u0308": "\u00e4", "\u2026": "...",
             "o\u0323\u0302": "\u1ed9", "\u00bd": "1\u20442"}
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
        for old, new in rules.items():
            file.write("\t".join(" ".join(f"{ord(c):X}" for c in text) for text in (old, new)) + "\n")
        file.flush()
        for name, model_type in (("default", "bpe"), ("unigram", "unigram")):
            train_sentencepiece(folder, name, lines, model_type, normalization_rule_tsv=file.name,
                                user_defined_symbols=["<think>", "==", "a b"], control_symbols=["<sep>"])
    train_sentencepiece(folder, "unigram_bytes", lines, "unigram", byte_fallback=True,
                        normalization_rule_name="identity", remove_extra_whitespaces=False)
    train_sentencepiece(folder, "llama2", lines, byte_fallback=True, normalization_rule_name="identity",
                        remove_extra_whitespaces=False, split_digits=True)


def short_texts():
    """Those of the record: up to 40 characters, so that they are small."""
    return [text if len(text) <= 40 else text[:40] for text in make_texts(500, seed=2)]


def in_short(offsets):
    """Each token's length, after a comma when it does not begin where the one before ends."""
    end, words = 0, []
    for first, last in offsets:
        words.append(f"{last - first}" if first == end else f"{first - end},{last - first}")
        end = last
    return " ".join(words)


def record(folder, into):
    folder, into = pathlib.Path(folder), pathlib.Path(into)
    texts = short_texts()
    (into / "texts.json").write_text(json.dumps(texts, separators=(",\n", ":")) + "\n")
    for path in sorted([*folder.glob("*.json"), *folder.glob("*.model")]):
        (into / path.suffix[1:]).mkdir(exist_ok=True)
        with open(into / path.suffix[1:] / f"{path.stem}.expected", "w") as file:
            for text, (ids, offsets, decoded) in zip(texts, of_library(path, texts)):
                # Of most texts what is decoded is the text itself.
                row = [" ".join(map(str, ids)), in_short(offsets)] + ([] if decoded == text else [decoded])
                file.write(json.dumps(row, separators=(",", ":")) + "\n")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    command, *arguments = sys.argv[1:]
    commands = {"compare": compare, "speed": speed, "long": long, "train": train, "record": record}
    sys.exit(commands[command](*arguments))


if __name__ == "__main__":
    main()
