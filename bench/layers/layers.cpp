// What each layer costs without a kernel and a wire: Table III of "RPC in the x-Kernel", in nanoseconds of processor
// time on the simulated wire; its section 4.3; the cost of AUTH; Table II and Figure 6 of "The x-Kernel".
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "alternate.h"
#include "auth_stack.h"
#include "core/interrupt.h"
#include "core/store.h"
#include "netrpc/protocols/auth/aes_gcm.h"
#include "session.h"
#include "sim_pair.h"

namespace lrpc::bench {
namespace {

using namespace std::chrono_literals;

/// A row of the table, and the row whose stack has one layer less.
struct LayerRow {
  std::string_view stack;
  int below;  ///< Index of that row; -1: none.
};
constexpr LayerRow kRows[] = {
    {"ETH", -1},
    {"VIP", 0},
    {"FRAGMENT-VIP", 1},
    {"CHANNEL-FRAGMENT-VIP", 2},
    {"SELECT-CHANNEL-FRAGMENT-VIP", 3},
    {"SELECT-CHANNEL-VIPsize", -1},
    {"M_RPC-ETH", 0},
    {"M_RPC-VIP", 1},
};
/// Here some differences are to a stack in which one layer is replaced by another.
constexpr LayerRow kSunRows[] = {
    {"UDP", -1},
    {"REQUEST_REPLY-UDP", 0},
    {"SUN_CALL-REQUEST_REPLY-UDP", 1},
    {"SUN_SELECT-SUN_CALL-REQUEST_REPLY-UDP", 2},
    {"AUTH_NONE-SUN_CALL-REQUEST_REPLY-UDP", 2},
    {"SUN_SELECT-AUTH_NONE-SUN_CALL-REQUEST_REPLY-UDP", 4},
    {"SUN_SELECT-AUTH_SYS-SUN_CALL-REQUEST_REPLY-UDP", 5},
    {"SUN_SELECT-SUN_CALL-REQUEST_REPLY-FRAGMENT-UDP", 3},
    {"SUN_SELECT-SUN_CALL-CHANNEL-FRAGMENT-UDP", 7},
    {"SELECT-CHANNEL-UDP", -1},
};

/// Measures and prints a row for each stack. Nothing if it was interrupted.
Result<std::optional<Alternated>> measure(Session& session, std::span<const LayerRow> rows) {
  std::vector<std::unique_ptr<SimPair>> pairs;
  std::vector<Subject> subjects;
  for (const LayerRow& row : rows) {
    auto pair = SimPair::create(stack(row.stack));
    if (!pair) return Error{pair.code(), fmt::format("{}: {}", row.stack, pair.error().message())};
    StackClient& trips = (*pair)->trips();
    subjects.push_back({std::string(row.stack), [&trips] { return trips.once(0) == Errc::ok; }});
    pairs.push_back(std::move(*pair));
  }
  Alternated measured = alternate(subjects, session.clock(), session.quick() ? 100 : 1000, 1ms);
  if (interrupted()) return std::optional<Alternated>();
  std::size_t longest = 30;
  for (const LayerRow& row : rows) longest = std::max(longest, row.stack.size());
  const Table table{{"stack", -static_cast<int>(longest)},
                    {"ns a round trip", 16},
                    {"layer adds, ns", 15},
                    {"paper, ms", 10},
                    {"paper adds", 11}};
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    const LayerRow& layer = rows[i];
    const PaperStack& paper = stack(layer.stack).paper;
    std::optional<double> adds;
    std::optional<double> paper_adds;
    if (layer.below >= 0) {
      const auto below = static_cast<std::size_t>(layer.below);
      adds = measured.difference(i, below);
      const PaperStack& paper_below = stack(rows[below].stack).paper;
      if (paper.latency_ms && paper_below.latency_ms) paper_adds = *paper.latency_ms - *paper_below.latency_ms;
    }
    table.print({std::string(layer.stack), number(measured.median_of(i)), number(adds), number(paper.latency_ms),
                 number(paper_adds)});
    session.emit_json({.bench = "layers", .test = std::string(layer.stack), .figures = measured.figures(i)});
  }
  return std::optional(std::move(measured));
}

Status measure_layers(Session& session) {
  const Result<std::optional<Alternated>> result = measure(session, kRows);
  if (!result) return result.error();
  if (!*result) return {};
  const Alternated& measured = **result;
  const auto index = [](std::string_view name) {
    std::size_t i = 0;
    while (kRows[i].stack != name) ++i;
    return i;
  };
  print_note(
      fmt::format("Layered against monolithic: {}. Section 4.3, FRAGMENT bypassed by VIPsize: {} of the layered stack, "
                  "{} of M_RPC-VIP (the paper: 1.08, 0.92, 0.99).",
                  ratio(measured.ratio(index("SELECT-CHANNEL-FRAGMENT-VIP"), index("M_RPC-VIP"))),
                  ratio(measured.ratio(index("SELECT-CHANNEL-VIPsize"), index("SELECT-CHANNEL-FRAGMENT-VIP"))),
                  ratio(measured.ratio(index("SELECT-CHANNEL-VIPsize"), index("M_RPC-VIP")))));
  return {};
}

/// What authentication and encryption between two hosts cost, for each cipher.
Status measure_auth(Session& session) {
  constexpr std::size_t kSizes[] = {0, 64, 1024, 16'000};
  std::vector<std::string> ciphers = {"chacha20-poly1305"};
  if (netrpc::auth::aes_gcm::available()) ciphers.emplace_back("aes256-gcm");
  std::vector<std::unique_ptr<SimPair>> pairs;
  if (Status added = append(pairs, SimPair::create(stack(AuthStack::kWithout))); !added) return added;
  for (const std::string& cipher : ciphers) {
    const AuthStack auth(cipher);
    if (Status written = auth.written(); !written) return written;
    if (Status added = append(pairs, SimPair::create(auth.stack())); !added) return added;
  }
  std::vector<Subject> subjects;
  for (const std::size_t size : kSizes) {
    for (const auto& pair : pairs) {
      StackClient& trips = pair->trips();
      subjects.push_back({fmt::format("{}", size), [&trips, size] { return trips.once(size) == Errc::ok; }});
    }
  }
  const Alternated measured = alternate(subjects, session.clock(), session.quick() ? 100 : 1000, 1ms);
  if (interrupted()) return {};
  const Table table{{"cipher", -18},       {"request bytes", 14}, {"without, ns", 12},
                    {"with AUTH, ns", 14}, {"AUTH adds, ns", 14}, {"ratio", 7}};
  for (std::size_t c = 0; c < ciphers.size(); ++c) {
    for (std::size_t i = 0; i < std::size(kSizes); ++i) {
      const std::size_t without = i * pairs.size();
      const std::size_t with = without + 1 + c;
      table.print({ciphers[c], subjects[with].name, number(measured.median_of(without)),
                   number(measured.median_of(with)), number(measured.difference(with, without)),
                   ratio(measured.ratio(with, without))});
      session.emit_json({.bench = "auth",
                         .test = fmt::format("{} {} {}", AuthStack::kName, ciphers[c], kSizes[i]),
                         .figures = measured.figures(with, without)});
    }
  }
  print_note(fmt::format("AES-256-GCM by {}.", netrpc::auth::aes_gcm::library()));
  return {};
}

}  // namespace

void layers(Session& session) {
  print_intro("Layers: a null round trip between two hosts on a simulated wire, ns of processor time",
              "Both hosts, all layers of both and the simulator run in one thread: two messages pushed through each "
              "layer, two demultiplexed. \"Adds\" is the median of the paired differences to the row one layer below.");
  session.check(measure_layers(session));
  print_intro("Sun RPC in layers: the same, and other layers in the places of its own",
              "\"Adds\" of a stack in which a layer has another's place is the difference to the one with that: "
              "AUTH_SYS for AUTH_NONE, CHANNEL (at most once) for REQUEST_REPLY (zero or more). TCP with record "
              "marking needs a kernel: `lrpc-bench network` has it.");
  session.check(measure(session, kSunRows));
  print_intro(
      fmt::format("AUTH: a round trip through {} and through {}", AuthStack::kWithout, AuthStack::kName),
      "A request of some bytes, sealed and opened, and a null reply, sealed and opened; the handshake is over.");
  session.check(measure_auth(session));
  if (!interrupted()) profile(session);
  if (!interrupted()) open_sessions(session);
}

}  // namespace lrpc::bench
