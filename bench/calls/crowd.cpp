#include "crowd.h"

#include <algorithm>
#include <cstdio>

#include "bench.client.h"
#include "core/ticks.h"
#include "lrpc_domains.h"

namespace lrpc::bench {

/// The member's process holds the bindings.
Result<Crowd::Member> Crowd::start_member(const ImportOptions& options) {
  std::vector<::Bench::Client> bindings;
  std::size_t called = 0;
  const auto call = [&]() -> Status {
    for (; called < bindings.size(); ++called)
      if (auto outcome = bindings[called].Null(); !outcome) return outcome.error();
    return {};
  };
  const auto bind = [&](Desk& desk) {
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
  return Member::start(
      "bench-crowd", own_seat(), [] { return Status(); },
      [&](Desk& desk) {
        if (desk.call) return call();
        desk.import_ticks = ticks_of([&] { bind(desk); });
        return Status();
      });
}

Result<std::unique_ptr<Crowd>> Crowd::create(const ImportOptions& options, std::uint32_t most) {
  std::unique_ptr<Crowd> crowd(new Crowd);
  for (std::uint32_t planned = 0; planned < most; planned += kBindingsPerProcess) {
    auto member = start_member(options);
    if (!member) return member.error();
    if (auto up = (*member)->turns.await(); !up) return up.error();
    crowd->members_.push_back(*std::move(member));
  }
  return crowd;
}

Status Crowd::take_turn(Member& member) {
  member->turns.begin();
  return member->turns.await(std::chrono::seconds(60));
}

Status Crowd::bind_up_to(std::uint32_t count) {
  import_ticks_ = 0;
  const std::uint32_t had = bindings();
  std::uint32_t left = count;
  for (Member& member : members_) {
    Desk& desk = *member;
    desk.target = std::min(left, kBindingsPerProcess);
    desk.call = false;
    left -= desk.target;
    if (desk.bound >= desk.target || !why_not_.empty()) continue;
    if (auto done = take_turn(member); !done) return done;
    import_ticks_ += desk.import_ticks;
    why_not_ = desk.why_not;
  }
  imports_ = bindings() - had;
  return {};
}

Status Crowd::call_new_ones() {
  for (Member& member : members_) {
    member->call = true;
    if (auto done = take_turn(member); !done) return done;
  }
  return {};
}

std::uint32_t Crowd::bindings() const noexcept {
  std::uint32_t sum = 0;
  for (const Member& member : members_) sum += member->bound;
  return sum;
}

std::vector<pid_t> Crowd::pids() const {
  std::vector<pid_t> all;
  for (const Member& member : members_) all.push_back(member.pid());
  return all;
}

}  // namespace lrpc::bench
