// lrpc-replicas: stores and reads values, and counts, at a group of lrpc-replica servers.
#include <fmt/format.h>

#include <chrono>
#include <string>

#include "lrpc/command_line.h"
#include "replicated.h"

namespace {

int failed(const lrpc::Error& error) {
  fmt::print(stderr, "lrpc-replicas: {}\n", error.message());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::string group = "replicas";
  std::string key;
  std::string value;
  int number = 1;
  int place = 0;
  lrpc::ImportOptions options;
  options.call_timeout = std::chrono::minutes(4);
  lrpc::command_line::Program program("Works on what a group of lrpc-replica keeps.");
  program.require_subcommand();
  program.option("--group", group, "The group's name in the graph of lrpc-netd").show_default();
  program.option("--nameserver", options.nameserver,
                 "Nameserver socket (default: $LRPC_SOCKET, then the usual places)");
  const auto put = program.subcommand("put", "Store a value");
  put.option("key", key, "Its key").required();
  put.option("value", value, "The value").required();
  const auto get = program.subcommand("get", "Print a value");
  get.option("key", key, "Its key").required();
  const auto add = program.subcommand("add", "Add to the counter, and print it");
  add.option("number", number, "How many").non_negative();
  add.option("--place", place, "0 to 15: of this client alone").non_negative().show_default();
  (void)program.subcommand("count", "Print the counter");
  if (const auto status = program.parse(argc, argv)) return *status;

  if (put.parsed() || get.parsed()) {
    auto store = replicas::ReplicatedStore::import("store@" + group, options);
    if (!store) return failed(store.error());
    if (put.parsed()) {
      const lrpc::Status stored = store->put(key, value);
      return stored ? 0 : failed(stored.error());
    }
    const auto stored = store->get(key);
    if (!stored) return failed(stored.error());
    if (!*stored) return failed({lrpc::Errc::name_unknown, "no value has the key '" + key + "'"});
    fmt::print("{}\n", **stored);
    return program.printed(0);
  }
  auto counter = replicas::ReplicatedCounter::import("counter@" + group, static_cast<std::size_t>(place), options);
  if (!counter) return failed(counter.error());
  const auto sum = add.parsed() ? counter->add(static_cast<std::uint64_t>(number)) : counter->value();
  if (!sum) return failed(sum.error());
  fmt::print("{}\n", *sum);
  return program.printed(0);
}
