// lrpc-bench-profile COUNT: sends COUNT messages of one byte through FRAGMENT, VIP and ETH to another host on the
// simulated wire, and receives their answers. `lrpc-bench layers` runs it under callgrind.
#include <fmt/format.h>

#include <cstdlib>

#include "sim_pair.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: lrpc-bench-profile COUNT\n");
    return 2;
  }
  auto pair = lrpc::bench::SimPair::create(lrpc::bench::stack("FRAGMENT-VIP"));
  if (!pair) {
    fmt::print(stderr, "lrpc-bench-profile: {}\n", pair.error().message());
    return 1;
  }
  (*pair)->answer_with(1);
  for (long left = std::strtol(argv[1], nullptr, 10); left > 0; --left)
    if ((*pair)->trips().once(1) != lrpc::Errc::ok) return 1;
  return 0;
}
