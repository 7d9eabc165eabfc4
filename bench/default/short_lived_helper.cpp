// lrpc-bench-short-lived [NAMESERVER NAME GATE]: imports NAME, calls it once and ends. Prints how many nanoseconds the
// import and the call took. Without arguments it does nothing.
#include <chrono>
#include <cstdio>
#include <optional>
#include <string_view>

#include "bench.client.h"

namespace {

using std::chrono::steady_clock;

std::optional<lrpc::Gate> gate_named(std::string_view name) {
  for (const auto gate : {lrpc::Gate::adaptive, lrpc::Gate::exchange, lrpc::Gate::handoff, lrpc::Gate::sleep})
    if (name == name_of(gate)) return gate;
  return std::nullopt;
}

long long ns_between(steady_clock::time_point from, steady_clock::time_point to) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(to - from).count();
}

int report(const lrpc::Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 1) return 0;
  const auto gate = argc == 4 ? gate_named(argv[3]) : std::nullopt;
  if (!gate) return 2;
  const auto begun = steady_clock::now();
  auto client = Bench::Client::import(argv[2], {.nameserver = argv[1], .gate = *gate});
  const auto imported = steady_clock::now();
  if (!client) return report(client.error());
  const auto called = client->Null();
  const auto returned = steady_clock::now();
  if (!called) return report(called.error());
  std::printf("%lld %lld\n", ns_between(begun, imported), ns_between(imported, returned));
  return 0;
}
