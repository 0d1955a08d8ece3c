{
  loss: "mse"
  seed: 1
}
