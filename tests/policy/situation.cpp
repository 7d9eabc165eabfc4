#include "situation.h"

#include <algorithm>
#include <utility>

namespace lrpc::simulated {

using Kind = Disturbance::Kind;

namespace {

Life hog_until(Thread& me, Machine& machine, std::uint64_t ends) {
  while (machine.now() < ends) co_await me.work(us(50));
  for (;;) co_await me.wait();
}

Life job_until(Thread& me, Machine& machine, std::uint64_t ends, std::uint64_t which) {
  for (std::uint64_t n = which; machine.now() < ends; ++n) {
    co_await me.work(std::min(us(1'000 + n * 7 % 5 * 1'500), ends - machine.now()));
    co_await me.sleep(us(100 + n % 3 * 300));
  }
  for (;;) co_await me.wait();
}

/// A machine with all that runs on it.
class Stage {
 public:
  Stage(const Situation& at, Gate gate) : at_(at), machine_(at.processors, at.costs), lrpcd_(machine_, false) {
    for (unsigned i = 0; i < at.hogs; ++i) hogs_.push_back(&machine_.start(machine_.all(), hog));
    for (unsigned i = 0; i < at.builds; ++i)
      machine_.start(machine_.all(), [&](Thread& me) { return build(me, i + 1); });
    if (at.third_party)
      machine_.start(machine_.all(), [&](Thread& me) { return third_party(me, machine_, us(1'000), us(200), done_); });
    using Quota = Situation::Quota;
    const auto quota = [](bool limited) { return limited ? us(50'000) : 0; };
    Group& shared = machine_.add_group(quota(at.quota == Quota::both));
    for (unsigned i = 0; i < at.servers; ++i) {
      // Each process is a group, so that it can be stopped.
      const bool one = at.quota == Quota::both;
      Group& server = one ? shared : machine_.add_group(quota(at.quota == Quota::server));
      Group& callers = one ? shared : machine_.add_group(quota(at.quota == Quota::callers));
      groups_.emplace_back(&server, &callers);
      const Domain::Surroundings around{.server = &server, .clients = &callers, .lrpcd = at.lrpcd ? &lrpcd_ : nullptr};
      domains_.push_back(std::make_unique<Domain>(machine_, gate, at.apart ? 2 : machine_.all(), around));
      for (unsigned n = 0; n < at.callers; ++n) domains_.back()->add_caller(at.pattern, at.apart ? 1 : machine_.all());
    }
  }

  Machine& machine() { return machine_; }
  void begin_to_count() {
    for (const auto& domain : domains_) domain->forget_times();
    done_ = {};
    hogs_had_ = hogs_have();
    switches_had_ = switches();
    began_ = machine_.now();
  }
  void disturb();
  Outcome outcome() const;

 private:
  [[nodiscard]] double hogs_have() const {
    std::uint64_t all = 0;
    for (const Thread* one : hogs_) all += one->ran();
    return static_cast<double>(all);
  }
  [[nodiscard]] std::uint64_t switches() const {
    std::uint64_t all = 0;
    for (const auto& domain : domains_) all += domain->switches();
    return all;
  }
  void confine(std::uint64_t servers, std::uint64_t callers) {
    for (const auto& domain : domains_) {
      domain->confine_server(servers);
      domain->confine_callers(callers);
    }
  }

  const Situation& at_;
  Machine machine_;
  Lrpcd lrpcd_;
  std::vector<Thread*> hogs_;
  Calls done_;
  std::vector<std::pair<Group*, Group*>> groups_;
  std::vector<std::unique_ptr<Domain>> domains_;
  double hogs_had_ = 0;
  std::uint64_t switches_had_ = 0;
  std::uint64_t began_ = 0;
};

void Stage::disturb() {
  const Disturbance& it = at_.disturbance;
  const std::uint64_t there = std::uint64_t{1} << it.processor;
  const std::uint64_t all = machine_.all();
  const std::uint64_t ends = machine_.now() + it.lasts;
  const bool stands_still = it.kind >= Kind::machine_frozen && it.kind <= Kind::client_stopped;
  for (const auto& domain : domains_) {
    for (const auto& astack : domain->astacks()) {
      // Which calls are under way when a freeze begins is chance, so they do not count.
      if (stands_still) astack->history.forgive(machine_.now());
    }
  }
  switch (it.kind) {
    case Kind::none: return;
    case Kind::machine_frozen:
      for (unsigned i = 0; i < machine_.processors(); ++i) machine_.freeze(i, it.lasts);
      return;
    case Kind::processor_frozen: return machine_.freeze(it.processor, it.lasts);
    case Kind::server_stopped: return machine_.stop(*groups_[0].first, it.lasts);
    case Kind::client_stopped: return machine_.stop(*groups_[0].second, it.lasts);
    case Kind::processor_offline:
      machine_.set_online(it.processor, false);
      return machine_.after(it.lasts, [this, &it] { machine_.set_online(it.processor, true); });
    case Kind::server_confined: confine(there, all); break;
    case Kind::callers_confined: confine(all, there); break;
    case Kind::both_confined: confine(there, there); break;
    case Kind::apart: confine(there, all & ~there); break;
    case Kind::hogs:
    case Kind::build:
      for (std::uint64_t i = 0; i < 2; ++i) {
        machine_.start(all, [&](Thread& me) {
          return it.kind == Kind::hogs ? hog_until(me, machine_, ends) : job_until(me, machine_, ends, i);
        });
      }
      return;
  }
  machine_.after(it.lasts, [this, all] { confine(all, all); });
}

Outcome Stage::outcome() const {
  Outcome outcome;
  for (const auto& domain : domains_) {
    outcome.calls += domain->calls();
    for (const auto& astack : domain->astacks()) {
      outcome.history.add(astack->history);
      if (astack->calls_since != 0) outcome.stuck = std::max(outcome.stuck, machine_.now() - astack->calls_since);
    }
  }
  const auto time = static_cast<double>(machine_.now() - began_);
  outcome.hogs = (hogs_have() - hogs_had_) / time;
  outcome.third_us = done_.mean_us();
  outcome.switches_a_second = static_cast<double>(switches() - switches_had_) / (time / us(1'000'000));
  return outcome;
}

}  // namespace

Times Times::of(const Situation& at) {
  Times times;
  times.settled = at.lrpcd ? us(300'000) : us(40'000);  // the allocator needs some ticks
  times.disturbed = times.settled + (at.quota != Situation::Quota::none || at.lrpcd ? us(200'000) : us(60'000));
  // Rounded up to whole bins.
  times.ended = times.disturbed + (at.disturbance.lasts + History::kBin - 1) / History::kBin * History::kBin;
  times.recovered = times.ended + us(60'000);
  times.end = times.recovered + us(60'000);
  if (at.disturbance.kind == Kind::none) times.ended = times.recovered = times.end = times.disturbed;
  return times;
}

Outcome run(const Situation& at, Gate gate, const Times& times) {
  Stage stage(at, gate);
  stage.machine().run_for(times.settled);
  stage.begin_to_count();
  stage.machine().run_for(times.disturbed - times.settled);
  if (times.end > times.disturbed) stage.disturb();
  stage.machine().run_for(times.end - times.disturbed);
  return stage.outcome();
}

}  // namespace lrpc::simulated
