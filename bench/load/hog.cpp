#include "hog.h"

#include <sched.h>

#include <cerrno>

#include "core/store.h"

namespace lrpc::bench {
namespace {

constexpr double kClientWeight = 4;

[[noreturn]] void compute_for_ever() {
  for (volatile std::uint64_t turns = 0;;) turns = turns + 1;
}

}  // namespace

Result<Child> start_hog(const Seat& seat) {
  return Child::spawn("bench-hog", seat, []() -> int { compute_for_ever(); });
}

Result<Surroundings> Surroundings::create(const Cell& cell, const Cores& cores) {
  Surroundings around;
  const auto add_hog = [&](const Seat& seat) { return append(around.hogs_, start_hog(seat)); };
  const auto add_group = [](std::optional<ControlGroup>& group, const char* name, double weight) {
    return store(group, ControlGroup::create(name, weight));
  };
  Status done;
  switch (cell.load) {
    case Load::idle: break;
    case Load::one_hog: done = add_hog(cores.seats(cell.placement).client); break;
    case Load::hog_everywhere:
      for (const Seat& seat : cores.each())
        if (done) done = add_hog(seat);
      break;
    case Load::hog_in_other_group:
      done = add_group(around.hog_group_, "hog", 1);
      if (done) done = add_hog(cores.seats(cell.placement).client);
      if (done) done = around.hog_group_->take(around.hogs_.back().pid());
      break;
    case Load::unequal_weights:
      done = add_group(around.client_group_, "client", kClientWeight);
      if (done) done = add_group(around.server_group_, "server", 1);
      break;
    case Load::fifo_caller: done = try_fifo(); break;  // each caller sets the policy itself
  }
  if (!done) return done.error();
  return around;
}

Status Surroundings::admit_client(pid_t process) const {
  return client_group_ ? client_group_->take(process) : Status{};
}
Status Surroundings::admit_server(pid_t process) const {
  return server_group_ ? server_group_->take(process) : Status{};
}

Status become_fifo() noexcept {
  const sched_param lowest{.sched_priority = ::sched_get_priority_min(SCHED_FIFO)};
  if (::sched_setscheduler(0, SCHED_FIFO, &lowest) != 0) return system_error("sched_setscheduler(SCHED_FIFO)", errno);
  return {};
}

Status try_fifo() noexcept {
  if (auto done = become_fifo(); !done) return done;
  const sched_param ordinary{};
  if (::sched_setscheduler(0, SCHED_OTHER, &ordinary) != 0)
    return system_error("sched_setscheduler(SCHED_OTHER)", errno);
  return {};
}

}  // namespace lrpc::bench
