// Figure 6 of The x-Kernel: whether the number of open sessions matters. Beside it, the kernel's UDP with as many
// ports.
#include <fmt/format.h>

#include "alternate.h"
#include "core/interrupt.h"
#include "lrpc/detail/shim/system/daemon_descriptors.h"
#include "session.h"
#include "sim_pair.h"
#include "udp_ports.h"

namespace lrpc::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kSessions[] = {1, 10, 100, 1000, 10'000};

Result<Alternated> measure_ours(const Session& session) {
  constexpr Stack kFragment{"FRAGMENT-VIP",
                            "eth = ETH; ip = IP; vip = VIP over eth, ip; top = FRAGMENT(sessions = 100000) over vip;",
                            netrpc::Service::datagram};
  std::vector<std::unique_ptr<SimPair>> pairs;
  std::vector<Subject> subjects;
  for (const std::size_t count : kSessions) {
    auto pair = SimPair::create(kFragment);
    if (!pair) return pair.error();
    for (std::size_t i = 1; i < count; ++i)
      if (const Errc opened = (*pair)->open_another(); opened != Errc::ok) return Error{opened, "one more session"};
    StackClient& trips = (*pair)->trips();
    subjects.push_back({fmt::format("{} sessions", count), [&trips] { return trips.once(0) == Errc::ok; }});
    pairs.push_back(std::move(*pair));
  }
  return alternate(subjects, session.clock(), session.quick() ? 100 : 1000, 1ms);
}

/// A kernel has all sockets in the same tables, whatever their namespace, so the steps cannot exist side by side. Each
/// round opens them one after another, and closes them again. A step beyond the limit of descriptors has no blocks.
Result<Alternated> measure_kernel(const Session& session) {
  constexpr std::size_t kBlocks = 4;  // for each step and round: opening takes far longer than a block
  auto ports = UdpPorts::open();
  if (!ports) return ports.error();
  std::vector<Subject> subjects;
  for (const std::size_t count : kSessions) {
    const Subject step{fmt::format("{} sessions", count), [&ports] { return ports->once(); }, 1,
                       [&ports, count] { return count <= UdpPorts::most() && ports->have(count); }};
    subjects.insert(subjects.end(), kBlocks, step);
  }
  const Alternated measured = alternate(subjects, session.clock(), session.quick() ? 15 : 100, 1ms);
  Alternated merged;
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    if (i % kBlocks == 0) merged.blocks.emplace_back();
    merged.blocks.back().insert(merged.blocks.back().end(), measured.blocks[i].begin(), measured.blocks[i].end());
  }
  return merged;
}

Status measure(Session& session) {
  const auto ours = measure_ours(session);
  if (!ours) return ours.error();
  shim::raise_descriptor_limit();
  const auto kernel = measure_kernel(session);
  if (!kernel) return kernel.error();
  if (interrupted()) return {};
  const Table table{
      {"open sessions", -13}, {"FRAGMENT-VIP, ns", 16}, {"to one", 7}, {"kernel UDP, ns", 16}, {"to one", 7}};
  for (std::size_t i = 0; i < std::size(kSessions); ++i) {
    table.print({fmt::format("{}", kSessions[i]), number(ours->median_of(i)), ratio(ours->ratio(i, 0)),
                 number(kernel->median_of(i)), ratio(kernel->ratio(i, 0))});
    const auto emit = [&](std::string_view system, const Alternated& measured) {
      if (measured.blocks[i].empty()) return;
      session.emit_json({.bench = "sessions",
                         .system = system,
                         .test = fmt::format("{} sessions", kSessions[i]),
                         .figures = measured.figures(i, 0)});
    };
    emit("lrpc", *ours);
    emit("kernel UDP", *kernel);
  }
  if (kernel->blocks.back().empty() && UdpPorts::most() < kSessions[std::size(kSessions) - 1])
    print_note(fmt::format("The limit of descriptors has room for {} ports.", UdpPorts::most()));
  print_note(
      "The paper: the x-kernel is constant, Unix, with its linear list of ports, 10 % slower at 40 ports. Both columns "
      "are one thread that does both hosts' work; compare \"to one\", not the nanoseconds: the kernel's have system "
      "calls in them.");
  return {};
}

}  // namespace

void open_sessions(Session& session) {
  print_title("Open sessions (The x-Kernel, Figure 6): a round trip among so many, and the kernel's UDP, ns");
  fmt::print("\n");
  session.check(measure(session));
}

}  // namespace lrpc::bench
