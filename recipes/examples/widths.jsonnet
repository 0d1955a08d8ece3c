// The same in Jsonnet, for recipes with something to compute: every layer is half as wide as the one before.
local width = 64;
local spirals(samples) = { type: 'synthetic', task: 'spirals', num_samples: samples, num_classes: 2, noise: 0.02 };

{
  recipe_version: 1,
  run_name: 'widths-%d' % width,
  model: { type: 'mlp', hidden: [width / std.pow(2, i) for i in std.range(0, 2)], activation: 'gelu' },
  data: { train: spirals(1000), val: spirals(200) },
  loss: 'cross_entropy',
  optimizer: { type: 'adamw', lr: 5e-3 },
  training: { max_epochs: 10, micro_batch_size: 50 },
  eval: { eval_steps: '5ep', metrics: ['accuracy'] },
}
