// Ids and greedy continuations of llama.cpp: node llama_cpp_ids.mjs PACKAGES MODEL.gguf INPUT.json -> JSON. INPUT has `texts`
// (their ids), `prompts` (lists of ids) and `tokens` (how many follow each). PACKAGES: a folder where
// `npm install node-llama-cpp @node-llama-cpp/linux-x64` was run.
import {readFileSync} from "node:fs";
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";

const [packages, file, input] = process.argv.slice(2);
const main = createRequire(packages + "/package.json").resolve("node-llama-cpp");
const {getLlama} = await import(pathToFileURL(main).href);
const llama = await getLlama({gpu: false, build: "never", skipDownload: true, logLevel: "error"});
const model = await llama.loadModel({modelPath: file, gpuLayers: 0});
const {texts, prompts, tokens} = JSON.parse(readFileSync(input, "utf8"));
const told = {ids: texts.map(text => Array.from(model.tokenize(text))), continuations: []};
const context = await model.createContext({contextSize: 512, threads: 2});
const sequence = context.getSequence();
for (const prompt of prompts) {
  await sequence.clearHistory();
  const made = [];
  for await (const token of sequence.evaluate(prompt, {temperature: 0, yieldEogToken: true})) {
    made.push(token);
    if (made.length === tokens || model.isEogToken(token)) break;
  }
  told.continuations.push(made);
}
console.log(JSON.stringify(told));
process.exit(0);
