// What loss costs: calls by one caller and by eight concurrent callers over a wire that loses packets at random,
// compared with a wire that loses none.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "core/interrupt.h"
#include "report/statistics.h"
#include "session.h"
#include "wire_pair.h"

namespace lrpc::bench {
namespace {

using namespace std::chrono_literals;

/// A stack whose loss rate is to be filled in. FAULT is part of the graph even without loss, so that the ratio shows
/// only the loss.
struct Lossy {
  std::string_view name;
  std::string_view graph;
};

constexpr Lossy kStacks[] = {
    {"SELECT-CHANNEL-FRAGMENT-VIP",
     "eth = ETH; ip = IP; vip = VIP over eth, ip; fault = FAULT(on = push, loss = {}) over vip;"
     "fragment = FRAGMENT over fault; channel = CHANNEL over fragment; top = SELECT over channel;"},
    {"M_RPC-VIP",
     "eth = ETH; ip = IP; vip = VIP over eth, ip; fault = FAULT(on = push, loss = {}) over vip;"
     "top = M_RPC over fault;"}};

/// Each end loses this share of the packets that it sends.
constexpr std::array<double, 4> kLosses{0, 0.01, 0.1, 0.3};

struct Load {
  int callers;
  std::size_t size;  ///< Bytes of a request; the reply is empty.
  std::array<bool, kLosses.size()> at;
};
constexpr Load kLoads[] = {
    {1, 0, {true, true, true, true}}, {8, 0, {true, true, true, true}}, {1, 16'000, {true, false, true, false}}};

/// Calls a second of all callers together; nothing if a call has failed.
std::optional<double> calls_per_second(WirePair& pair, const Load& load, std::chrono::milliseconds block) {
  std::atomic<std::uint64_t> calls = 0;
  std::atomic<bool> over = false;
  std::atomic<bool> failed = false;
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> callers;
  for (int i = 0; i < load.callers; ++i) {
    callers.emplace_back([&] {
      while (!over) {
        if (pair.trips().once(load.size) != Errc::ok) failed = true;
        ++calls;
      }
    });
  }
  std::this_thread::sleep_for(block);
  over = true;
  for (std::thread& caller : callers) caller.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (failed) return std::nullopt;
  return static_cast<double>(calls) / took.count();
}

using Pairs = std::array<std::unique_ptr<WirePair>, kLosses.size()>;

Status measure(Session& session, const Table& table, const Lossy& stack, Pairs& pairs, const Load& load) {
  std::array<std::vector<double>, kLosses.size()> rates;
  std::array<std::vector<double>, kLosses.size()> ratios;
  const int rounds = session.quick() ? 10 : 50;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < kLosses.size(); ++i) {
      if (!load.at[i]) continue;
      if (interrupted()) return {};
      const auto rate = calls_per_second(*pairs[i], load, 200ms);
      if (!rate) return Error{Errc::call_failed, fmt::format("{}: a call has failed", stack.name)};
      rates[i].push_back(*rate);
      ratios[i].push_back(*rate / rates[0].back());
    }
  }
  for (std::size_t i = 1; i < kLosses.size(); ++i) {
    if (!load.at[i]) continue;
    table.print({std::string(stack.name), fmt::format("{}", load.callers), fmt::format("{}", load.size),
                 fmt::format("{:.0f} %", 100 * kLosses[i]), fmt::format("{:.0f}", median(rates[0])),
                 fmt::format("{:.0f}", median(rates[i])), ratio(median(ratios[i]))});
    Row row{.bench = "loss",
            .test = fmt::format("{} {} callers {} bytes {}", stack.name, load.callers, load.size, kLosses[i])};
    row.figures = Figures::exactly(1e9 / std::max(median(rates[i]), 1.0), rates[i].size());
    row.figures.ratio = median(ratios[i]);
    session.emit_json(row);
  }
  return {};
}

Status measure_all(Session& session, const Table& table, const Lossy& stack) {
  Pairs pairs;
  for (std::size_t i = 0; i < kLosses.size(); ++i) {
    const std::string graph = fmt::format(fmt::runtime(stack.graph), kLosses[i]);
    auto pair = WirePair::create({stack.name, graph.c_str()}, session.cores().seats(Placement::unpinned));
    if (!pair) return pair.error();
    pairs[i] = std::move(*pair);
  }
  for (const Load& load : kLoads)
    if (Status status = measure(session, table, stack, pairs, load); !status) return status;
  return {};
}

}  // namespace

void loss(Session& session) {
  print_title("Loss: calls a second, two network namespaces joined by veth");
  print_note(
      "Each end loses that share of the packets that it sends, at random (FAULT under FRAGMENT or M_RPC); the replies "
      "are empty. Medians of blocks of 200 ms measured in turns; the ratio is the median of paired ratios (the bar at "
      "10 %: 0.50).");
  if (const auto why = netrpc::test::why_no_namespaces()) return session.fail(*why);
  const Table table{{"stack", -30},  {"callers", 8},    {"bytes", 6}, {"loss", 6},
                    {"without", 10}, {"with loss", 10}, {"ratio", 8}};
  try {
    for (const Lossy& stack : kStacks) {
      if (interrupted()) return;
      session.check(measure_all(session, table, stack));
    }
  } catch (const std::exception& error) {
    session.fail(error.what());
  }
}

}  // namespace lrpc::bench
