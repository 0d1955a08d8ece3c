// Generation by llama.cpp on a CPU: node llama_cpp.mjs PACKAGES MODEL.gguf PROMPT.txt TOKENS NEW THREADS -> one JSON
// line. PACKAGES: a folder where `npm install node-llama-cpp @node-llama-cpp/linux-x64` was run.
import {readFileSync} from "node:fs";
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";

const [packages, file, prompt, length, count, threads] = process.argv.slice(2);
const main = createRequire(packages + "/package.json").resolve("node-llama-cpp");
const {getLlama} = await import(pathToFileURL(main).href);
const llama = await getLlama({gpu: false, build: "never", maxThreads: Number(threads), logLevel: "error"});
const model = await llama.loadModel({modelPath: file, gpuLayers: 0});
const context = await model.createContext({contextSize: 1024, threads: Number(threads)});
const sequence = context.getSequence();
const tokens = model.tokenize(readFileSync(prompt, "utf8")).slice(0, Number(length));

async function seconds(count) {
  await sequence.clearHistory();
  let made = 0, first = 0;
  for await (const _ of sequence.evaluate(tokens, {temperature: 0, yieldEogToken: true})) {
    if (++made === 1) first = performance.now();
    if (made === count) break;
  }
  return (performance.now() - first) / 1000;
}

await seconds(8);
console.log(JSON.stringify({workload: "generate", tokens_per_s: (Number(count) - 1) / await seconds(Number(count))}));
process.exit(0);
