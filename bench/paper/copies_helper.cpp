// lrpc-bench-copies: prints the counted copies, one JSON object a line.
#include <fmt/format.h>

#include "copies.h"

int main() {
  const auto rows = lrpc::bench::count_copies();
  if (!rows) {
    fmt::print(stderr, "lrpc-bench-copies: {}\n", rows.error().message());
    return 1;
  }
  for (const auto& row : *rows)
    fmt::print("{{\"operation\":\"{}\",\"argument\":\"{}\",\"A\":{},\"E\":{},\"F\":{}}}\n", row.operation, row.argument,
               row.a, row.e, row.f);
  return 0;
}
