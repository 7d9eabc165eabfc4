// Random situations, and their descriptions.
#include <array>
#include <random>

#include "situation.h"

namespace lrpc::simulated {

using Kind = Disturbance::Kind;
using Quota = Situation::Quota;

namespace {

constexpr std::array<const char*, 12> kKinds{
    "nothing",         "machine frozen",   "processor frozen", "server stopped", "client stopped", "processor offline",
    "server confined", "callers confined", "both confined",    "apart",          "two hogs",       "a build"};
constexpr std::array<const char*, 4> kQuotas{"", "server's", "callers'", "common"};

}  // namespace

Situation Situation::draw(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto one_of = [&](std::initializer_list<std::uint64_t> these) {
    return *(these.begin() + std::uniform_int_distribution<std::size_t>(0, these.size() - 1)(random));
  };
  const auto one_in = [&](unsigned n) { return std::uniform_int_distribution<unsigned>(1, n)(random) == 1; };
  Situation at;
  at.processors = static_cast<unsigned>(one_of({1, 2, 2, 2, 4, 4}));
  at.servers = static_cast<unsigned>(one_of({1, 1, 1, 2, 2, 4}));
  at.callers = at.servers > 1 ? 1 : static_cast<unsigned>(one_of({1, 1, 1, 2, 3}));
  at.pattern = {.think = us(one_of({0, 0, 1, 10, 50, 100, 150, 1'000})),
                .sleep = one_in(4) ? us(one_of({1, 10, 100, 1'000})) : 0,
                .procedure = us(one_of({0, 0, 0, 5})),
                .varies = !one_in(3)};
  if (one_in(5)) {
    at.pattern.slow = us(one_of({5, 50, 500}));
    at.pattern.slow_every = static_cast<unsigned>(one_of({1, 2, 10, 100}));
  }
  at.pattern.realtime = one_in(8);
  if (one_in(4)) at.hogs = static_cast<unsigned>(one_of({1, 2, 4}));
  if (one_in(8)) at.builds = 2;
  at.third_party = one_in(4);
  at.apart = at.processors > 1 && one_in(8);
  at.lrpcd = at.servers > 1 && one_in(2);
  if (one_in(8)) at.quota = static_cast<Quota>(one_of({1, 2, 3}));
  at.costs = {.switched = us(one_of({1, 2})),
              .woken_far = us(one_of({3, 8, 40})),
              .moved = us(one_of({10, 25})),
              .slice = us(one_of({700, 3'000})),
              .balanced = us(4'000),
              .siblings = at.processors > 1 && one_in(4),
              .steal_clock = !one_in(3)};
  if (!one_in(4)) {
    at.disturbance = {.kind = static_cast<Kind>(std::uniform_int_distribution<unsigned>(1, 11)(random)),
                      .processor = std::uniform_int_distribution<unsigned>(0, at.processors - 1)(random),
                      .lasts = us(one_of({300, 1'000, 5'000, 20'000, 40'000}))};
  }
  const bool needs_two = at.disturbance.kind == Kind::processor_offline || at.disturbance.kind == Kind::apart;
  if (needs_two && at.processors == 1) at.disturbance = {};
  return at;
}

std::string Situation::what() const {
  const auto in_us = [](std::uint64_t time) { return std::to_string(time / kPerUs) + " us"; };
  std::string what = std::to_string(processors) + " processors, " + std::to_string(servers) + " servers of " +
                     std::to_string(callers) + " callers";
  const auto say = [&](bool so, const std::string& that) {
    if (so) what += ", " + that;
  };
  say(pattern.think > 0, "think " + in_us(pattern.think));
  say(pattern.sleep > 0, "sleep " + in_us(pattern.sleep));
  say(pattern.varies, "varying");
  say(pattern.procedure > 0, "procedure " + in_us(pattern.procedure));
  say(pattern.slow_every > 0, in_us(pattern.slow) + " every " + std::to_string(pattern.slow_every));
  say(pattern.realtime, "SCHED_FIFO");
  say(hogs > 0, std::to_string(hogs) + " hogs");
  say(builds > 0, std::to_string(builds) + " jobs of a build");
  say(third_party, "a third party");
  say(apart, "apart");
  say(lrpcd, "lrpcd");
  say(quota != Quota::none, std::string(kQuotas[static_cast<std::size_t>(quota)]) + " quota");
  say(costs.siblings, "siblings");
  say(!costs.steal_clock, "no steal clock");
  what += ", costs " + in_us(costs.switched) + "/" + in_us(costs.woken_far) + "/" + in_us(costs.moved) + "/" +
          in_us(costs.slice);
  say(disturbance.kind != Kind::none, std::string(kKinds[static_cast<std::size_t>(disturbance.kind)]) + " (" +
                                          std::to_string(disturbance.processor) + ") for " + in_us(disturbance.lasts));
  return what;
}

}  // namespace lrpc::simulated
