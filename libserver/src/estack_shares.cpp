#include "estack_shares.h"

#include <utility>

namespace lrpc::server {

const std::atomic<bool>& EStackShares::take(uid_t user) {
  const auto found = users_.try_emplace(user).first;
  const bool was_eligible = is_eligible(found->second);
  ++found->second.held;
  changed(found, was_eligible);
  return found->second.waits;
}

void EStackShares::give(uid_t user) {
  const auto found = users_.find(user);
  const bool was_eligible = is_eligible(found->second);
  --found->second.held;
  changed(found, was_eligible);
}

std::size_t EStackShares::held(uid_t user) const {
  const auto found = users_.find(user);
  return found != users_.end() ? found->second.held : 0;
}

void EStackShares::changed(Users::iterator user, bool was_eligible) {
  User& of = user->second;
  const bool eligible = is_eligible(of);
  if (eligible && !was_eligible) ++eligible_;
  if (!eligible && was_eligible) --eligible_;
  // An E-stack says that it rests and reads these; whoever has a call says so here and looks who rests.
  eligible_wait_.store(eligible_ != 0, std::memory_order_seq_cst);
  of.waits.store(!of.waiting.empty(), std::memory_order_seq_cst);
  if (of.held == 0 && of.waiting.empty()) users_.erase(user);
}

bool EStackShares::add(WaitingCall call) {
  if (call.astack->waits_as != 0) return false;
  call.number = ++last_number_;
  put_back(std::move(call));
  return true;
}

void EStackShares::put_back(WaitingCall call) {
  const auto user = users_.try_emplace(call.user).first;
  const bool was_eligible = is_eligible(user->second);
  const std::uint64_t number = call.number;
  ServedAStack& astack = *call.astack;
  user->second.waiting.emplace(number, std::move(call));
  astack.waits_as = number;
  ++waiting_;
  changed(user, was_eligible);
}

bool EStackShares::remove(uid_t user, ServedAStack& astack) {
  if (astack.waits_as == 0) return false;
  const auto found = users_.find(user);
  const bool was_eligible = is_eligible(found->second);
  const auto removed = found->second.waiting.extract(std::exchange(astack.waits_as, 0));
  --waiting_;
  changed(found, was_eligible);
  return true;
}

std::optional<WaitingCall> EStackShares::next() {
  auto next = users_.end();
  for (auto user = users_.begin(); eligible_ != 0 && user != users_.end(); ++user) {
    if (!is_eligible(user->second)) continue;
    const auto rank = [](const User& of) { return std::pair(of.held, of.waiting.begin()->first); };
    if (next == users_.end() || rank(user->second) < rank(next->second)) next = user;
  }
  if (next == users_.end()) return std::nullopt;
  WaitingCall taken = std::move(next->second.waiting.begin()->second);
  next->second.waiting.erase(next->second.waiting.begin());
  taken.astack->waits_as = 0;
  --waiting_;
  changed(next, true);
  return taken;
}

void EStackShares::clear() {
  for (auto user = users_.begin(); user != users_.end();) {
    const auto of = user++;  // changed() may end it
    const bool was_eligible = is_eligible(of->second);
    for (auto& [number, call] : of->second.waiting) call.astack->waits_as = 0;
    waiting_ -= of->second.waiting.size();
    of->second.waiting.clear();
    changed(of, was_eligible);
  }
}

bool EStackShares::any_waiting(uid_t user) const {
  const auto found = users_.find(user);
  return found != users_.end() && !found->second.waiting.empty();
}

bool EStackShares::is_wanted(uid_t holder) const {
  if (any_waiting(holder)) return true;
  if (eligible_ == 0) return false;
  const std::size_t has = held(holder);
  return std::ranges::any_of(
      users_, [&](const auto& one) { return is_eligible(one.second) && may_take_from_other(one.second.held, has); });
}

}  // namespace lrpc::server
