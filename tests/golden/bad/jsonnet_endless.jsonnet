local f(x) = f(x + 1);
{ seed: f(1) }
