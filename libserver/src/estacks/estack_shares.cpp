#include "estack_shares.h"

#include <utility>

#include "lrpc/detail/shim/most_of_one.h"

namespace lrpc::server {

void EStackShares::dismiss(uid_t user) noexcept {
  const auto found = users_.find(user);
  --found->second.bindings;
  changed(found);
}

const std::atomic<bool>& EStackShares::take(uid_t user) {
  const auto found = users_.try_emplace(user).first;
  ++found->second.held;
  ++in_use_;
  changed(found);
  return found->second.waits;
}

void EStackShares::give(uid_t user) {
  const auto found = users_.find(user);
  --found->second.held;
  --in_use_;
  changed(found);
}

std::size_t EStackShares::held(uid_t user) const {
  const auto found = users_.find(user);
  return found != users_.end() ? found->second.held : 0;
}

bool EStackShares::may_grow(std::size_t has) const {
  if (has >= most_of_user_) return false;
  const std::size_t free = most_ - std::min(most_, in_use_);
  // A user that has none may have the first that leaves another A-stack. Without a last part there are no fair shares.
  return has == 0 || last_ == 0 || free > last_ || shim::one_may_take(1, has, last_ - free, last_);
}

bool EStackShares::may_take_from_other(std::size_t has, std::size_t holder_has) const {
  if (has >= most_of_user_) return false;
  if (!may_grow(has)) return holder_has > share() && holder_has > has;
  return holder_has > share() || has < share();
}

void EStackShares::changed(Users::iterator user) {
  User& of = user->second;
  const auto count = [](bool& before, bool now, std::size_t& all) {
    if (now && !before) ++all;
    if (!now && before) --all;
    before = now;
  };
  count(of.eligible, !of.waiting.empty() && of.held < most_of_user_, eligible_);
  count(of.shares, of.held != 0 || !of.waiting.empty(), sharers_);
  // An E-stack says that it rests, then reads these; a thread with a call writes these, then looks which E-stacks rest.
  eligible_wait_.store(eligible_ != 0, std::memory_order_seq_cst);
  of.waits.store(!of.waiting.empty(), std::memory_order_seq_cst);
  if (!of.shares && of.bindings == 0) users_.erase(user);
}

bool EStackShares::add(WaitingCall call) {
  std::list<WaitingCall>& place = call.astack->waiting->here;
  if (place.empty()) return false;
  const auto user = users_.try_emplace(call.user).first;
  call.number = ++last_number_;
  place.front() = std::move(call);
  user->second.waiting.splice(user->second.waiting.end(), place);
  ++waiting_;
  changed(user);
  return true;
}

void EStackShares::put_back(WaitingCall call) {
  std::list<WaitingCall>& place = call.astack->waiting->here;
  const auto user = users_.try_emplace(call.user).first;
  place.front() = std::move(call);
  user->second.waiting.splice(user->second.waiting.begin(), place);
  ++waiting_;
  changed(user);
}

WaitingCall EStackShares::take_out(User& user, ServedAStack& astack) {
  WaitingPlace& place = *astack.waiting;
  WaitingCall taken = std::exchange(*place.call, {});  // keeps its binding no more
  place.here.splice(place.here.end(), user.waiting, place.call);
  --waiting_;
  return taken;
}

bool EStackShares::remove(uid_t user, ServedAStack& astack) {
  if (!astack.waiting->here.empty()) return false;
  const auto found = users_.find(user);
  const WaitingCall removed = take_out(found->second, astack);
  changed(found);
  return true;
}

EStackShares::Users::iterator EStackShares::first_in_line() {
  auto first = users_.end();
  for (auto user = users_.begin(); eligible_ != 0 && user != users_.end(); ++user) {
    if (!user->second.eligible) continue;
    const auto rank = [](const User& of) { return std::pair(of.held, of.waiting.front().number); };
    if (first == users_.end() || rank(user->second) < rank(first->second)) first = user;
  }
  return first;
}

std::optional<WaitingCall> EStackShares::next() {
  const auto next = first_in_line();
  if (next == users_.end() || !may_grow(next->second.held)) return std::nullopt;
  WaitingCall taken = take_out(next->second, *next->second.waiting.front().astack);
  changed(next);
  return taken;
}

std::optional<uid_t> EStackShares::refused() {
  const auto first = first_in_line();
  if (first == users_.end() || may_grow(first->second.held)) return std::nullopt;
  return first->first;
}

void EStackShares::clear() {
  for (auto user = users_.begin(); user != users_.end();) {
    const auto of = user++;  // changed() may end it
    while (!of->second.waiting.empty()) (void)take_out(of->second, *of->second.waiting.front().astack);
    changed(of);
  }
}

std::size_t EStackShares::waiting(uid_t user) const {
  const auto found = users_.find(user);
  return found != users_.end() ? found->second.waiting.size() : 0;
}

void EStackShares::begin_search() noexcept {
  for (auto& [uid, user] : users_) user.leaving = 0;
}

bool EStackShares::take_in_search(uid_t user, uid_t holder, std::size_t& got) {
  if (user == holder) return true;
  User& from = users_.find(holder)->second;
  if (!may_take_from_other(held(user) + got, from.held - from.leaving)) return false;
  ++from.leaving;
  ++got;
  return true;
}

bool EStackShares::is_wanted(uid_t holder) const {
  if (waiting(holder) != 0) return true;
  if (eligible_ == 0) return false;
  const std::size_t has = held(holder);
  return std::ranges::any_of(
      users_, [&](const auto& one) { return one.second.eligible && may_take_from_other(one.second.held, has); });
}

}  // namespace lrpc::server
