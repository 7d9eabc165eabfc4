// Tables I, II and III of "RPC in the x-Kernel", and Tables III and V and Figure 5 of "The x-Kernel", between two
// network namespaces joined by veth.
#include <fmt/format.h>

#include <algorithm>

#include "core/interrupt.h"
#include "field.h"
#include "layers/auth_stack.h"
#include "session.h"

namespace lrpc::bench {
namespace {

using namespace std::chrono_literals;

const PaperStack& paper_of(std::string_view name) {
  static constexpr PaperStack kNone;
  for (const Stack& one : all_stacks())
    if (one.name == name) return one.paper;
  return kNone;
}

struct NetworkRow {
  std::string_view name;
  std::string_view floor;  ///< The row that is the denominator of "to floor".
};

std::size_t index_of(std::span<const NetworkRow> rows, std::string_view name) {
  std::size_t i = 0;
  while (rows[i].name != name) ++i;
  return i;
}

/// Latency with null messages; throughput with 16,000 bytes; the cost of each further 1 KiB.
Alternated measure(Session& session, const Field& field, Placement placement, std::string_view bench,
                   std::span<const NetworkRow> rows, bool throughput) {
  const std::size_t rounds = session.quick() ? 20 : 200;
  const auto trips = [&rows](std::size_t size) {
    std::vector<Trip> all;
    for (const NetworkRow& row : rows) all.push_back({row.name, size});
    return all;
  };
  Alternated null = field.round_trips(session, trips(0), rounds, 2ms);
  Alternated k1;
  Alternated k16;
  if (throughput) {
    k1 = field.round_trips(session, trips(1024), rounds / 4, 4ms);
    k16 = field.round_trips(session, trips(16'000), rounds / 4, 4ms);
  }
  if (interrupted()) return null;
  std::size_t longest = 30;
  for (const NetworkRow& row : rows) longest = std::max(longest, row.name.size());
  std::vector<Column> columns = {{"stack", -static_cast<int>(longest)}, {"us", 8}, {"to floor", 9}, {"paper ms", 9}};
  if (throughput)
    columns.insert(columns.end(), {{"16k: MB/s", 10}, {"paper kB/s", 11}, {"us per 1k", 10}, {"paper ms", 9}});
  const Table table(columns);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t floor = index_of(rows, rows[i].floor);
    const PaperStack& paper = paper_of(rows[i].name);
    std::vector<std::string> cells = {std::string(rows[i].name), number(null.median_of(i) / 1000),
                                      ratio(null.ratio(i, floor)), number(paper.latency_ms)};
    if (throughput) {
      const double large = k16.median_of(i);
      cells.insert(cells.end(), {number(16'000 / large * 1000), number(paper.throughput_kbytes),
                                 number((large - k1.median_of(i)) / 1000 / (16'000.0 / 1024 - 1)),
                                 number(paper.incremental_ms_per_k)});
    }
    table.print(cells);
    session.emit_json({.bench = bench,
                       .placement = name(placement),
                       .test = std::string(rows[i].name),
                       .figures = null.figures(i, floor)});
  }
  return null;
}

Status add_all(Field& field, const AuthStack& auth) {
  if (Status written = auth.written(); !written) return written;
  for (std::size_t instance = 0; instance < Field::kInstances; ++instance) {
    if (interrupted()) return {};
    for (const SocketKind kind : {SocketKind::packet, SocketKind::raw_ip, SocketKind::udp, SocketKind::tcp})
      if (Status added = field.add(kind); !added) return added;
    for (const Stack& one : all_stacks())
      if (one.name != "TCP" && one.at_server.empty())  // user_to_user() measures those
        if (Status added = field.add(one); !added) return added;
    if (Status added = field.add(auth.stack()); !added) return added;
  }
  return {};
}

Status measure_tables(Session& session, Placement placement) {
  Field field(session.cores().seats(placement));
  const AuthStack auth;
  if (Status added = add_all(field, auth); !added || interrupted()) return added;
  const auto title = [&](std::string_view text) { print_title(fmt::format("{} ({})", text, name(placement))); };
  title("Table I: M_RPC over ETH, IP and VIP");
  constexpr NetworkRow kTable1[] = {{"AF_PACKET", "AF_PACKET"},
                                    {"raw IP", "AF_PACKET"},
                                    {"M_RPC-ETH", "AF_PACKET"},
                                    {"M_RPC-IP", "AF_PACKET"},
                                    {"M_RPC-VIP", "AF_PACKET"}};
  const Alternated table1 = measure(session, field, placement, "network1", kTable1, true);
  if (interrupted()) return {};
  print_note(fmt::format("VIP to ETH: {} (the paper: 1.03; the bar: 1.04). IP to ETH: {} (the paper: 1.21).",
                         ratio(table1.ratio(4, 2)), ratio(table1.ratio(3, 2))));
  title("Table II: layered against monolithic, and section 4.3");
  constexpr NetworkRow kTable2[] = {{"AF_PACKET", "AF_PACKET"},
                                    {"M_RPC-VIP", "AF_PACKET"},
                                    {"SELECT-CHANNEL-FRAGMENT-VIP", "AF_PACKET"},
                                    {"SELECT-CHANNEL-VIPsize", "AF_PACKET"}};
  const Alternated table2 = measure(session, field, placement, "network2", kTable2, true);
  if (interrupted()) return {};
  print_note(
      fmt::format("Layered to monolithic: {} (the paper: 1.08; the bar: 1.08). FRAGMENT bypassed to monolithic: {} "
                  "(the paper: 0.99; the bar: 1.00).",
                  ratio(table2.ratio(2, 1)), ratio(table2.ratio(3, 1))));
  title("Table III: the layers one by one");
  constexpr NetworkRow kTable3[] = {
      {"VIP", "VIP"}, {"FRAGMENT-VIP", "VIP"}, {"CHANNEL-FRAGMENT-VIP", "VIP"}, {"SELECT-CHANNEL-FRAGMENT-VIP", "VIP"}};
  const Alternated table3 = measure(session, field, placement, "network3", kTable3, false);
  if (interrupted()) return {};
  print_note(fmt::format("Added, ns: FRAGMENT {}, CHANNEL {}, SELECT {} (the paper: 0.21, 0.49, 0.11 ms).",
                         number(table3.difference(1, 0)), number(table3.difference(2, 1)),
                         number(table3.difference(3, 2))));
  title("The x-Kernel, Table III: latency by stack, beside today's kernel");
  constexpr NetworkRow kStacks[] = {{"AF_PACKET", "AF_PACKET"},  {"ETH", "AF_PACKET"},
                                    {"raw IP", "AF_PACKET"},     {"IP", "raw IP"},
                                    {"kernel UDP", "AF_PACKET"}, {"UDP", "kernel UDP"},
                                    {"kernel TCP", "AF_PACKET"}, {"SELECT-CHANNEL-UDP", "kernel UDP"}};
  (void)measure(session, field, placement, "stacks", kStacks, false);
  if (interrupted()) return {};
  print_note(
      "The paper, ms, x-kernel and Unix: ETH 1.68 and 4.87; IP-ETH 1.89 and 5.62; UDP-IP-ETH 2.00 and 5.36; TCP-IP-ETH "
      "3.30 and 6.10; RPC-UDP-IP-ETH 4.00 and 9.20.");
  title("Sun RPC over UDP, and over TCP with record marking");
  constexpr NetworkRow kSun[] = {{"kernel UDP", "kernel UDP"},
                                 {"SUN_SELECT-AUTH_NONE-SUN_CALL-REQUEST_REPLY-UDP", "kernel UDP"},
                                 {"kernel TCP", "kernel TCP"},
                                 {"SUN_SELECT-AUTH_NONE-SUN_CALL-REQUEST_REPLY-TCP", "kernel TCP"}};
  const Alternated sun = measure(session, field, placement, "sun", kSun, true);
  if (interrupted()) return {};
  print_note(
      fmt::format("TCP to UDP: {}; of the kernel's own sockets: {}.", ratio(sun.ratio(3, 1)), ratio(sun.ratio(2, 0))));
  title("AUTH: the stack of lrpc-netd without it and with it");
  constexpr NetworkRow kAuth[] = {{AuthStack::kWithout, AuthStack::kWithout}, {AuthStack::kName, AuthStack::kWithout}};
  const Alternated with_auth = measure(session, field, placement, "auth", kAuth, true);
  if (interrupted()) return {};
  print_note(fmt::format("AUTH adds {} ns.", number(with_auth.difference(1, 0))));
  return user_to_user(session, placement);
}

}  // namespace

void network(Session& session) {
  print_title("The network path: round trips between two network namespaces joined by veth");
  print_note(
      "Medians of blocks measured in turns, microseconds; ratios are medians of paired ratios. A request of some "
      "bytes, a null reply. AF_PACKET, raw IP, kernel UDP and TCP are bare ping-pongs with blocking system calls.");
  on_each_placement(session, measure_tables);
}

}  // namespace lrpc::bench
