// Tables 1 to 3 of "An RPC Protocol in the Berkeley UNIX Kernel": PAIRED over UDP between two network namespaces joined
// by veth.
#include <fmt/format.h>
#include <sys/resource.h>

#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "core/interrupt.h"
#include "core/store.h"
#include "layers/alternate.h"
#include "report/statistics.h"
#include "session.h"
#include "wire_pair.h"

namespace lrpc::bench {
namespace {

using namespace std::chrono_literals;

/// One row of Tables 1 and 2: milliseconds a call, between two VAX-11/750 on a 10 Mbit/s Ethernet.
struct PaperCall {
  std::size_t argument;
  std::size_t result;
  double elapsed;
  double user;
  double kernel;
};

constexpr std::array<PaperCall, 15> kTable1{{{100, 10, 17.4, 1.1, 5.9},
                                             {200, 10, 20.7, 0.5, 8.4},
                                             {300, 10, 22.8, 0.7, 9.3},
                                             {400, 10, 23.3, 0.7, 8.7},
                                             {500, 10, 25.9, 0.5, 11.1},
                                             {600, 10, 26.8, 0.5, 10.9},
                                             {700, 10, 28.6, 0.7, 11.8},
                                             {800, 10, 30.4, 0.6, 11.8},
                                             {900, 10, 31.1, 0.5, 12.6},
                                             {1024, 10, 31.1, 0.9, 13.5},
                                             {1280, 10, 37.7, 1.4, 16.2},
                                             {1536, 10, 42.6, 1.2, 19.0},
                                             {1792, 10, 47.3, 0.8, 20.6},
                                             {2048, 10, 47.6, 1.3, 22.4},
                                             {2100, 10, 52.5, 0.9, 22.8}}};
constexpr std::array<PaperCall, 14> kTable2{{{100, 100, 19.9, 0.5, 7.4},
                                             {200, 200, 22.8, 0.7, 9.5},
                                             {300, 300, 25.4, 0.5, 10.8},
                                             {400, 400, 29.0, 0.2, 10.7},
                                             {500, 500, 32.1, 0.9, 11.6},
                                             {600, 600, 35.6, 0.9, 13.0},
                                             {700, 700, 39.5, 0.5, 11.6},
                                             {800, 800, 41.6, 0.9, 14.2},
                                             {900, 900, 44.9, 1.3, 15.0},
                                             {1024, 1024, 38.0, 1.5, 14.6},
                                             {1280, 1280, 59.2, 0.9, 26.9},
                                             {1536, 1536, 66.8, 1.1, 23.1},
                                             {1792, 1792, 75.6, 1.5, 25.0},
                                             {2048, 2048, 72.7, 1.0, 26.8}}};

/// The cost of a call of one row, in microseconds.
struct Cost {
  double elapsed = std::nan("");  ///< Median of the blocks.
  // Processor time; means.
  double client_user = std::nan("");  ///< Of this thread, which itself receives the replies that it waits for.
  double client_kernel = std::nan("");
  double both_user = std::nan("");  ///< Of all threads of this process, that is, of both ends.
  double both_kernel = std::nan("");
};

/// Processor time so far, in microseconds.
struct Used {
  double user;
  double kernel;
};
Used used_by(int whom) {
  rusage used{};
  ::getrusage(whom, &used);
  const auto us = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
  };
  return {us(used.ru_utime), us(used.ru_stime)};
}

/// The client sends `argument` bytes, and the server answers with `result` bytes. NaN if a call fails.
Cost measure_calls(WirePair& pair, const TickClock& clock, std::size_t argument, std::size_t result, int blocks) {
  constexpr int kCalls = 100;  // in a block; the paper averages over as many
  pair.answer_with(result);
  std::vector<double> elapsed;
  for (int i = 0; i < kCalls; ++i)
    if (pair.trips().once(argument) != Errc::ok) return {};
  const Used both = used_by(RUSAGE_SELF);
  const Used client = used_by(RUSAGE_THREAD);
  for (int block = 0; block < blocks && !interrupted(); ++block) {
    const std::uint64_t began = ticks_begin();
    for (int i = 0; i < kCalls; ++i)
      if (pair.trips().once(argument) != Errc::ok) return {};
    elapsed.push_back(clock.ns(ticks_end() - began) / kCalls / 1000);
  }
  const Used client_after = used_by(RUSAGE_THREAD);
  const Used both_after = used_by(RUSAGE_SELF);
  const auto calls = static_cast<double>(elapsed.size()) * kCalls;
  return {median(elapsed), (client_after.user - client.user) / calls, (client_after.kernel - client.kernel) / calls,
          (both_after.user - both.user) / calls, (both_after.kernel - both.kernel) / calls};
}

void emit(Session& session, Placement placement, std::string_view bench, std::string test, double us) {
  session.emit_json({.bench = bench,
                     .placement = name(placement),
                     .test = std::move(test),
                     .figures = Figures::exactly(us * 1000, 1)});
}

Status calls_of_every_size(Session& session, Placement placement, std::string_view bench,
                           std::span<const PaperCall> rows) {
  auto pair = WirePair::create(stack("PAIRED-UDP"), session.cores().seats(placement));
  if (!pair) return pair.error();
  const Table table{{"argument", 9},    {"result", 7},     {"us", 8},        {"user us", 9}, {"kernel us", 10},
                    {"both: user", 11}, {"kernel us", 10}, {"paper ms", 10}, {"user ms", 9}, {"kernel ms", 10}};
  for (const PaperCall& row : rows) {
    if (interrupted()) return {};
    const Cost cost = measure_calls(**pair, session.clock(), row.argument, row.result, session.quick() ? 5 : 50);
    table.print({fmt::format("{}", row.argument), fmt::format("{}", row.result), number(cost.elapsed),
                 number(cost.client_user), number(cost.client_kernel), number(cost.both_user), number(cost.both_kernel),
                 number(row.elapsed), number(row.user), number(row.kernel)});
    emit(session, placement, bench, fmt::format("{}+{}", row.argument, row.result), cost.elapsed);
  }
  return {};
}

Status comparisons(Session& session, Placement placement) {
  const Seats seats = session.cores().seats(placement);
  constexpr std::size_t kArgument = 12;
  constexpr std::size_t kResult = 6;
  struct Compared {
    std::string_view name;
    std::string_view paper;  ///< What the paper compares in its place, in milliseconds.
  };
  constexpr Compared kRows[] = {{"kernel UDP", "UDP 26.5"},
                                {"kernel TCP", "TCP 23.2"},
                                {"PAIRED-UDP", "RPC 17.8 without retransmission, 22.05 with"},
                                {"SELECT-CHANNEL-UDP", "Circus 48.0, in user mode"},
                                {"M_RPC-IP", "-"}};
  std::vector<std::unique_ptr<BarePair>> bare;
  std::vector<std::unique_ptr<WirePair>> stacks;
  std::vector<Subject> subjects;
  for (const SocketKind kind : {SocketKind::udp, SocketKind::tcp}) {
    if (Status made = append(bare, BarePair::create(kind, seats)); !made) return made;
    subjects.push_back({std::string(name_of(kind)), [one = bare.back().get()] { return one->once(kArgument); }});
  }
  for (std::size_t i = bare.size(); i < std::size(kRows); ++i) {
    if (Status made = append(stacks, WirePair::create(stack(kRows[i].name), seats)); !made) return made;
    WirePair& pair = *stacks.back();
    pair.answer_with(kResult);
    subjects.push_back({std::string(kRows[i].name), [&pair] { return pair.trips().once(kArgument) == Errc::ok; }});
  }
  const Alternated times = alternate(subjects, session.clock(), session.quick() ? 30 : 200, 2ms);
  if (interrupted()) return {};
  const Table table{{"protocol", -20}, {"us", 8}, {"to UDP", 8}, {"  paper, ms", -45}};
  for (std::size_t i = 0; i < std::size(kRows); ++i) {
    const double us = times.median_of(i) / 1000;
    table.print({std::string(kRows[i].name), number(us), ratio(times.ratio(i, 0)), "  " + std::string(kRows[i].paper)});
    emit(session, placement, "paired3", std::string(kRows[i].name), us);
  }
  return {};
}

Status measure_tables(Session& session, Placement placement) {
  print_title(fmt::format("Table 1: calls with arguments of every size, results of 10 bytes ({})", name(placement)));
  if (Status done = calls_of_every_size(session, placement, "paired1", kTable1); !done) return done;
  if (interrupted()) return {};
  print_title(fmt::format("Table 2: calls with arguments and results of every size ({})", name(placement)));
  if (Status done = calls_of_every_size(session, placement, "paired2", kTable2); !done) return done;
  if (interrupted()) return {};
  print_title(fmt::format("Table 3: protocols, 12 bytes there and 6 back ({})", name(placement)));
  return comparisons(session, placement);
}

}  // namespace

void paired(Session& session) {
  print_title("PAIRED, the paired message protocol, over UDP between two network namespaces joined by veth");
  print_note(
      "Elapsed time is the median of blocks of 100 calls. Processor time is that of the client, as in the paper, then "
      "that of both ends together: user mode is PAIRED itself, which the paper has in the kernel, and the kernel is "
      "UDP, IP and the wire. A segment has at most a kilobyte, and each but the last is acknowledged by itself.");
  on_each_placement(session, measure_tables);
}

}  // namespace lrpc::bench
