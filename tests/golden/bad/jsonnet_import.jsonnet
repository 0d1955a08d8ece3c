(import "lib/nothing.libsonnet") + { seed: 1 }
