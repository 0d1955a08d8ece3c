local positive(x) = if x > 0 then x else error "seed must be positive";
{
  seed: positive(-1),
}
