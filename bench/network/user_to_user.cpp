// The x-Kernel paper's comparison with the sockets of its time: Table V and Figure 5.
#include <fmt/format.h>

#include "core/interrupt.h"
#include "field.h"
#include "report/svg_plot.h"
#include "session.h"

namespace lrpc::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMessage = 16 * 1024;
constexpr std::size_t kStream = 1024 * 1024;

/// A row of Table V. `paper` is in kilobytes a second, for SunOS 4.0.3 (kernel rows) and the x-kernel.
struct ThroughputRow {
  std::string_view name;
  std::size_t bytes;
  std::size_t floor;  ///< Index of the kernel's row with which this one is compared.
  std::optional<double> paper;
};
constexpr ThroughputRow kRows[] = {{"kernel UDP", kMessage, 0, 391}, {"UDP", kMessage, 0, 528},
                                   {"USER-UDP", kMessage, 0, {}},    {"FRAGMENT-VIP", kMessage, 0, {}},
                                   {"kernel TCP", kStream, 4, 303},  {"TCP", kStream, 4, 417}};

Status add_all(Field& field) {
  for (std::size_t instance = 0; instance < Field::kInstances; ++instance) {
    if (interrupted()) return {};
    // One system call a message: the kernel's IP fragments it, as in the paper.
    if (Status added = field.add("kernel UDP", SocketKind::udp, {.written = 70'000}); !added) return added;
    if (Status added = field.add(stack("UDP"), 1); !added) return added;
    if (Status added = field.add(stack("USER-UDP")); !added) return added;
    if (Status added = field.add(stack("FRAGMENT-VIP"), 1); !added) return added;
    if (Status added = field.add("kernel TCP", SocketKind::tcp, {.written = 1024, .read = 1024}); !added) return added;
    if (Status added = field.add_stream("TCP", stack("TCP")); !added) return added;
  }
  return {};
}

void emit(Session& session, std::string_view bench, Placement placement, std::string test, const Alternated& measured,
          std::size_t i, std::size_t floor) {
  session.emit_json(
      {.bench = bench, .placement = name(placement), .test = std::move(test), .figures = measured.figures(i, floor)});
}

void throughput(Session& session, const Field& field, Placement placement) {
  print_title(fmt::format("The x-Kernel, Table V: throughput between two users ({})", name(placement)));
  std::vector<Trip> trips;
  for (const ThroughputRow& row : kRows) trips.push_back({row.name, row.bytes});
  const Alternated measured = field.round_trips(session, trips, session.quick() ? 10 : 50, 4ms);
  if (interrupted()) return;
  const Table table{{"", -14}, {"bytes", 9}, {"us", 9}, {"MB/s", 8}, {"to kernel", 10}, {"paper kB/s", 11}};
  for (std::size_t i = 0; i < std::size(kRows); ++i) {
    const ThroughputRow& row = kRows[i];
    const double ns = measured.median_of(i);
    const double slower = measured.ratio(i, row.floor);
    table.print({std::string(row.name), fmt::format("{}", row.bytes), number(ns / 1000),
                 number(static_cast<double>(row.bytes) / ns * 1000), ratio(1 / slower), number(row.paper)});
    emit(session, "throughput", placement, std::string(row.name), measured, i, row.floor);
  }
  print_note(
      "UDP: a message of 16 KiB, which the kernel's IP cuts, and an answer of 1 byte. USER-UDP: the server is a "
      "process beside its graph. FRAGMENT-VIP: the message in Ethernet frames that are full; doing that brought the "
      "paper from 528 to 604. TCP: 1 MiB in writes of 1 KiB; ours are records. The paper: 1.35 and 1.38 times the "
      "throughput of Unix.");
}

void figure5(Session& session, const Field& field, Placement placement) {
  constexpr std::size_t kStep = 100;
  constexpr std::size_t kSizes = 1 + 1400 / kStep;
  constexpr std::string_view kLines[] = {"kernel UDP", "UDP", "USER-UDP"};
  constexpr std::size_t kEach = std::size(kLines);
  const auto size_of = [](std::size_t step) { return step == 0 ? 1 : step * kStep; };
  print_title(fmt::format("The x-Kernel, Figure 5: UDP by the size of the message ({})", name(placement)));
  std::vector<Trip> trips;
  for (std::size_t step = 0; step < kSizes; ++step)
    for (const std::string_view line : kLines) trips.push_back({line, size_of(step)});
  const Alternated measured = field.round_trips(session, trips, session.quick() ? 8 : 100, 1ms);
  if (interrupted()) return;
  std::vector<Column> columns = {{"bytes", 6}};
  for (const std::string_view line : kLines) {
    columns.insert(columns.end(), {{fmt::format("{} us", line), 14}, {"adds us", 8}});
    if (line != kLines[0]) columns.push_back({"to kernel", 10});
  }
  const Table table(columns);
  SvgPlot plot(fmt::format("UDP: a message there, a byte back ({})", name(placement)), {"bytes"}, {"us"});
  Series lines[kEach];
  for (std::size_t step = 0; step < kSizes; ++step) {
    std::vector<std::string> cells = {fmt::format("{}", size_of(step))};
    for (std::size_t line = 0; line < kEach; ++line) {
      const std::size_t i = kEach * step + line;
      const std::size_t kernel = kEach * step;
      const double us = measured.median_of(i) / 1000;
      cells.insert(cells.end(),
                   {number(us), step == 0 ? "" : fmt::format("{:.2f}", measured.difference(i, i - kEach) / 1000)});
      if (line != 0) cells.push_back(ratio(measured.ratio(i, kernel)));
      lines[line].points.emplace_back(size_of(step), us);
      emit(session, "figure5", placement, fmt::format("{}, {} bytes", kLines[line], size_of(step)), measured, i,
           kernel);
    }
    table.print(cells);
  }
  const auto slope = [&](std::size_t line) {  // averaged over all steps from the first size to the last
    return measured.difference(kEach * (kSizes - 1) + line, line) / 1000 / (kSizes - 1);
  };
  print_note(fmt::format(
      "100 bytes more add, us: {:.3f} to the kernel's, {:.3f} to ours, {:.3f} with a process as the server. The paper, "
      "ms: 0.25 throughout to the x-kernel's; to Unix's 0.25 or 0.57, by which of its two kinds of buffers was in use.",
      slope(0), slope(1), slope(2)));
  // For one byte in each direction: USER-UDP minus UDP.
  const double crossing = measured.difference(2, 1) / 1000;
  print_note(fmt::format(
      "Table II's boundary crossing: that the server is a process beside its graph adds {:.1f} us to one byte "
      "there and one back, {:.0f} % of the whole. The paper: 5.9 %, the user and the kernel.",
      crossing, 100 * crossing / (measured.median_of(2) / 1000)));
  session.emit_json({.bench = "crossing",
                     .placement = name(placement),
                     .test = "into a user process",
                     .figures = Figures::exactly(crossing * 1000, 1)});
  for (std::size_t line = 0; line < kEach; ++line) {
    lines[line].name = kLines[line];
    lines[line].dashed = line == 0;
    plot.add(std::move(lines[line]));
  }
  session.draw(fmt::format("figure5-{}", name(placement)), plot.str());
}

}  // namespace

Status user_to_user(Session& session, Placement placement) {
  Field field(session.cores().seats(placement));
  if (Status added = add_all(field); !added || interrupted()) return added;
  throughput(session, field, placement);
  if (!interrupted()) figure5(session, field, placement);
  return {};
}

}  // namespace lrpc::bench
