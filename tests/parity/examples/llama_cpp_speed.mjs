// Decoding of llama.cpp: node llama_cpp_speed.mjs PACKAGES MODEL.gguf THREADS TOKENS FIRST... -> tokens/s of as many tokens that
// follow the ids FIRST, by the greatest logit. It warms up until two rounds agree to 5 %. PACKAGES as for llama_cpp_ids.mjs.
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";

const [packages, file, threads, tokens, ...first] = process.argv.slice(2);
const main = createRequire(packages + "/package.json").resolve("node-llama-cpp");
const {getLlama} = await import(pathToFileURL(main).href);
const llama = await getLlama({gpu: false, build: "never", skipDownload: true, logLevel: "error", maxThreads: Number(threads)});
const model = await llama.loadModel({modelPath: file, gpuLayers: 0});
const context = await model.createContext({contextSize: 512, threads: Number(threads)});
const sequence = context.getSequence();

async function rate() {
  await sequence.clearHistory();
  let made = 0, begun = 0;
  for await (const token of sequence.evaluate(first.map(Number), {temperature: 0, yieldEogToken: true})) {
    if (made === 0) begun = performance.now();  // the prompt is computed
    if (made++ === Number(tokens)) break;
  }
  return 1000 * (made - 1) / (performance.now() - begun);
}

let before = await rate();
for (let round = 0; round < 8; ++round) {
  const now = await rate();
  if (Math.abs(now / before - 1) <= 0.05) break;
  before = now;
}
console.log(Math.max(await rate(), await rate()));
process.exit(0);
