[{ seed: 1 }]
