local width = 8;
{
  extends: "lib/good.yaml",
  seed: -3,
  model: { hidden: [width * i for i in [1, 0]] },
  traning: { max_steps: 5 },
}
