// What loss costs: small calls by eight callers at once over a wire that loses a tenth of all packets, and over one
// that does not.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "interrupt.h"
#include "session.h"
#include "wire_pair.h"

namespace lrpc::bench {
namespace {

using namespace std::chrono_literals;

constexpr int kCallers = 8;

/// One stack without loss and with it. FAULT stands in both, so that the ratio has nothing but the loss in it.
struct Lossy {
  Stack whole;
  Stack lossy;
};

constexpr Lossy kPairs[] = {
    {{"SELECT-CHANNEL-FRAGMENT-VIP",
      "eth = ETH; ip = IP; vip = VIP over eth, ip; fault = FAULT(on = push) over vip;"
      "fragment = FRAGMENT over fault; channel = CHANNEL over fragment; top = SELECT over channel;"},
     {"SELECT-CHANNEL-FRAGMENT-VIP",
      "eth = ETH; ip = IP; vip = VIP over eth, ip; fault = FAULT(on = push, loss = 0.1) over vip;"
      "fragment = FRAGMENT over fault; channel = CHANNEL over fragment; top = SELECT over channel;"}},
    {{"M_RPC-VIP",
      "eth = ETH; ip = IP; vip = VIP over eth, ip; fault = FAULT(on = push) over vip; top = M_RPC over fault;"},
     {"M_RPC-VIP",
      "eth = ETH; ip = IP; vip = VIP over eth, ip; fault = FAULT(on = push, loss = 0.1) over vip;"
      "top = M_RPC over fault;"}}};

/// Null calls a second of all callers together; nothing if one has failed.
std::optional<double> calls_per_second(WirePair& pair, std::chrono::milliseconds block) {
  std::atomic<std::uint64_t> calls = 0;
  std::atomic<bool> over = false;
  std::atomic<bool> failed = false;
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i) {
    callers.emplace_back([&] {
      while (!over) {
        if (pair.trips().once(0) != Errc::ok) failed = true;
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

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[values.size() / 2];
}

Status measure(Session& session, const Table& table, const Lossy& one) {
  auto whole = WirePair::create(one.whole, session.cores().seats(Placement::unpinned));
  if (!whole) return whole.error();
  auto lossy = WirePair::create(one.lossy, session.cores().seats(Placement::unpinned));
  if (!lossy) return lossy.error();
  std::vector<double> without;
  std::vector<double> with;
  std::vector<double> ratios;
  const int rounds = session.quick() ? 10 : 50;
  for (int round = 0; round < rounds && !interrupted(); ++round) {
    const auto a = calls_per_second(**whole, 200ms);
    const auto b = calls_per_second(**lossy, 200ms);
    if (!a || !b) return Error{Errc::call_failed, fmt::format("{}: a call has failed", one.whole.name)};
    without.push_back(*a);
    with.push_back(*b);
    ratios.push_back(*b / *a);
  }
  table.print({std::string(one.whole.name), fmt::format("{:.0f}", median(without)), fmt::format("{:.0f}", median(with)),
               ratio(median(ratios))});
  Row row{.bench = "loss", .system = "lrpc", .gate = "none", .test = std::string(one.whole.name)};
  row.figures = Figures::exactly(1e9 / std::max(median(with), 1.0), with.size());
  row.figures.ratio = median(ratios);
  session.emit_json(row);
  return {};
}

}  // namespace

void loss(Session& session) {
  print_title("Loss: null calls a second of eight callers at once, two network namespaces joined by veth");
  print_note(
      "Each end loses a tenth of the packets that it sends, at random (FAULT under FRAGMENT or M_RPC). Medians of "
      "blocks of 200 ms measured in turns; the ratio is the median of paired ratios (the bar: 0.50).");
  if (const auto why = netrpc::test::why_no_namespaces()) {
    session.fail(*why);
    return;
  }
  const Table table({{"stack", -30}, {"without", 10}, {"with loss", 10}, {"ratio", 8}});
  table.print_head();
  try {
    for (const Lossy& one : kPairs)
      if (const Status status = measure(session, table, one); !status) session.fail(status.error().message());
  } catch (const std::exception& error) {
    session.fail(error.what());
  }
}

}  // namespace lrpc::bench
