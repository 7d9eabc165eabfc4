#include "crowd.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>

#include "bench.client.h"
#include "core/ticks.h"
#include "core/turns.h"
#include "lrpc_domains.h"

namespace lrpc::bench {

struct Crowd::Desk {
  TurnDesk turns;
  std::uint32_t target;  ///< Bindings that there are to be.
  bool call;             ///< Call through those that have not called; do not bind.
  std::uint32_t bound;
  std::uint64_t import_ticks;  ///< Of this turn.
  char why_not[256];           ///< Empty unless an import has failed.
};

struct Crowd::Member {
  explicit Member(Shared<Desk> shared) : desk(std::move(shared)) {}
  Shared<Desk> desk;
  Child process;
};

int Crowd::be_member(const ImportOptions& options, Desk& desk) {
  std::vector<::Bench::Client> bindings;
  std::size_t called = 0;
  const auto bind = [&] {
    while (bindings.size() < desk.target && desk.why_not[0] == '\0') {
      auto client = ::Bench::Client::import(LrpcDomains::kExportedName, options);
      if (!client) {
        std::snprintf(desk.why_not, sizeof(desk.why_not), "%s", client.error().message().c_str());
        return;
      }
      bindings.push_back(std::move(*client));
      desk.bound = static_cast<std::uint32_t>(bindings.size());
    }
  };
  desk.turns.serve({}, [&]() -> Status {
    if (desk.call) {
      for (; called < bindings.size(); ++called) {
        if (auto outcome = bindings[called].Null(); !outcome) return outcome.error();
      }
      return {};
    }
    const std::uint64_t begun = ticks_begin();
    bind();
    desk.import_ticks = ticks_end() - begun;
    return {};
  });
}

Crowd::Crowd() = default;
Crowd::~Crowd() = default;

Result<std::unique_ptr<Crowd>> Crowd::create(const ImportOptions& options, std::uint32_t most) {
  std::unique_ptr<Crowd> crowd(new Crowd);
  for (std::uint32_t planned = 0; planned < most; planned += kBindingsPerProcess) {
    auto desk = Shared<Desk>::create();
    if (!desk) return desk.error();
    (*desk)->turns.prepare();
    crowd->members_.push_back(std::make_unique<Member>(std::move(*desk)));
    Member& member = *crowd->members_.back();
    auto process = Child::spawn("bench-crowd", own_seat(), [&] { return be_member(options, *member.desk); });
    if (!process) return process.error();
    member.process = std::move(*process);
    TurnDesk* const started = &member.desk->turns;
    if (auto up = await_turns({&started, 1}, {}); !up) return up.error();
  }
  return crowd;
}

Status Crowd::take_turn(Member& member) {
  TurnDesk* const turns = &member.desk->turns;
  turns->begin();
  return await_turns({&turns, 1}, {}, std::chrono::seconds(60));
}

Status Crowd::bind_up_to(std::uint32_t count) {
  import_ticks_ = 0;
  const std::uint32_t had = bindings();
  std::uint32_t left = count;
  for (auto& member : members_) {
    Desk& desk = *member->desk;
    desk.target = std::min(left, kBindingsPerProcess);
    desk.call = false;
    left -= desk.target;
    if (desk.bound >= desk.target || !why_not_.empty()) continue;
    if (auto done = take_turn(*member); !done) return done;
    import_ticks_ += desk.import_ticks;
    why_not_ = desk.why_not;
  }
  imports_ = bindings() - had;
  return {};
}

Status Crowd::call_new_ones() {
  for (auto& member : members_) {
    member->desk->call = true;
    if (auto done = take_turn(*member); !done) return done;
  }
  return {};
}

std::uint32_t Crowd::bindings() const noexcept {
  std::uint32_t sum = 0;
  for (const auto& member : members_) sum += member->desk->bound;
  return sum;
}

std::vector<pid_t> Crowd::pids() const {
  std::vector<pid_t> all;
  for (const auto& member : members_) all.push_back(member->process.pid());
  return all;
}

std::uint64_t raise_descriptor_limit(std::uint64_t wanted) noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  if (limit.rlim_cur >= wanted) return limit.rlim_cur;
  const rlimit raised{wanted, std::max<rlim_t>(wanted, limit.rlim_max)};
  if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) return wanted;
  const rlimit most{limit.rlim_max, limit.rlim_max};
  return ::setrlimit(RLIMIT_NOFILE, &most) == 0 ? limit.rlim_max : limit.rlim_cur;
}

}  // namespace lrpc::bench
