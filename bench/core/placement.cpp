#include "placement.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace lrpc::bench {
namespace {

Seat only(int processor) noexcept {
  Seat seat;
  CPU_ZERO(&seat);
  CPU_SET(static_cast<std::size_t>(processor), &seat);
  return seat;
}

int topology(int processor, std::string_view item) {
  std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu{}/topology/{}", processor, item));
  int number = -1;
  return file >> number ? number : -1;
}

/// How well `other` serves as the second core. 2: another core of the same package; 1: another package; 0: a sibling
/// thread.
int fitness(int first, int other) {
  const bool same_package = topology(first, "physical_package_id") == topology(other, "physical_package_id");
  const bool same_core = same_package && topology(first, "core_id") == topology(other, "core_id");
  return same_core ? 0 : same_package ? 2 : 1;
}

}  // namespace

std::string_view name(Placement placement) noexcept {
  static constexpr std::array kNames{"one-core", "two-cores", "unpinned"};
  static_assert(kNames.size() == std::size(kPlacements));
  return kNames[static_cast<std::size_t>(placement)];
}

Result<Cores> Cores::find() {
  Cores cores;
  if (::sched_getaffinity(0, sizeof(cores.all_), &cores.all_) != 0) return system_error("sched_getaffinity", errno);
  cores.first_ = -1;
  int best = -1;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (!CPU_ISSET(static_cast<std::size_t>(processor), &cores.all_)) continue;
    if (cores.first_ < 0) {
      cores.first_ = processor;
    } else if (const int fit = fitness(cores.first_, processor); fit > best) {
      best = fit;
      cores.second_ = processor;
    }
  }
  cores.siblings_ = best == 0 && topology(cores.first_, "core_id") >= 0;
  return cores;
}

std::string Cores::describe() const {
  if (!second_) return fmt::format("one processor may be used ({})", first_);
  return fmt::format("one-core on processor {}; two-cores on {} and {}{}", first_, first_, *second_,
                     siblings_ ? " (hardware threads of one core: no other core may be used)" : "");
}

Seats Cores::seats(Placement placement) const noexcept {
  switch (placement) {
    case Placement::one_core: return {only(first_), only(first_)};
    case Placement::two_cores: return {only(first_), only(second_.value_or(first_))};
    case Placement::unpinned: break;
  }
  return {all_, all_};
}

std::vector<Seat> Cores::each() const {
  std::vector<Seat> seats{only(first_)};
  if (second_) seats.push_back(only(*second_));
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (!CPU_ISSET(static_cast<std::size_t>(processor), &all_) || processor == first_ || processor == second_) continue;
    seats.push_back(only(processor));
  }
  return seats;
}

unsigned Cores::count() const noexcept { return static_cast<unsigned>(CPU_COUNT(&all_)); }

Seat Cores::among(unsigned processors) const {
  Seat seat;
  CPU_ZERO(&seat);
  std::vector<Seat> seats = each();
  seats.resize(processors);
  for (const Seat& one : seats) CPU_OR(&seat, &seat, &one);
  return seat;
}

Seat own_seat() noexcept {
  Seat seat;
  CPU_ZERO(&seat);  // sit() ignores an empty mask
  (void)::sched_getaffinity(0, sizeof(seat), &seat);
  return seat;
}

void sit(const Seat& seat) noexcept { (void)::sched_setaffinity(0, sizeof(seat), &seat); }

void seat_process(pid_t process, const Seat& seat) {
  std::error_code ignored;
  for (const auto& task : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process), ignored))
    (void)::sched_setaffinity(std::stoi(task.path().filename()), sizeof(seat), &seat);
}

}  // namespace lrpc::bench
