#include "estack_shares.h"

#include "lrpc/detail/shim/most_of_one.h"

namespace lrpc::server {

// ---- Users, or other hosts ----

bool EStackShares::Sharers::may_grow(std::size_t has) const {
  if (has >= most_of_one) return false;
  const std::size_t free = most - std::min(most, in_use);
  // One that has none may have the next that leaves another A-stack. If `last` is 0 there are no fair shares.
  return has == 0 || last == 0 || free > last || shim::one_may_take(1, has, last - free, last);
}

bool EStackShares::Sharers::may_take(std::size_t has, std::size_t from_has) const {
  if (has >= most_of_one) return false;
  if (!may_grow(has)) return from_has > share() && from_has > has;
  return from_has > share() || has < share();
}

std::size_t EStackShares::Sharers::held(Holder holder) const {
  const auto found = ones.find(key(holder));
  return found != ones.end() ? found->second.held : 0;
}

bool EStackShares::Sharers::is_wanted_by_other(Holder holder) const {
  if (eligible == 0) return false;
  const std::size_t has = held(holder);
  return std::ranges::any_of(ones, [&](const auto& one) {
    return one.first != key(holder) && one.second.eligible && may_take(one.second.held, has);
  });
}

EStackShares::Ones::const_iterator EStackShares::Sharers::first_in_line() const {
  auto first = ones.end();
  for (auto one = ones.begin(); eligible != 0 && one != ones.end(); ++one) {
    if (!one->second.eligible) continue;
    const auto rank = [](const One& of) { return std::pair(of.held, of.first); };
    if (first == ones.end() || rank(one->second) < rank(first->second)) first = one;
  }
  return first;
}

void EStackShares::Sharers::changed(Ones::iterator one, bool any_waiting, std::uint64_t first_call) {
  One& of = one->second;
  const auto count = [](bool& before, bool now, std::size_t& all) {
    if (now && !before) ++all;
    if (!now && before) --all;
    before = now;
  };
  of.first = first_call;
  count(of.eligible, first_call != 0 && of.held < most_of_one, eligible);
  count(of.shares, of.held != 0 || any_waiting, sharers);
  of.waits.store(any_waiting, std::memory_order_seq_cst);
  if (!of.shares && of.bindings == 0) ones.erase(one);
}

// ---- Users and other hosts ----

EStackShares::One& EStackShares::one_of(Holder holder) {
  One& user = users_.ones[holder.user];
  return holder.remote() ? hosts_.ones[holder.host] : user;
}

void EStackShares::changed(Holder holder) {
  const auto first_of = [](const One& one) { return one.waiting.empty() ? 0 : one.waiting.front().number; };
  const auto user = users_.ones.find(holder.user);
  // An E-stack notes that it rests, then reads the flags that are set here. A thread with a call sets them, then looks
  // which E-stacks rest. So one of the two sees the other.
  if (holder.remote()) {
    const auto host = hosts_.ones.find(holder.host);
    hosts_.changed(host, !host->second.waiting.empty(), first_of(host->second));
    const auto first = hosts_.first_in_line();
    const bool any = first != hosts_.ones.end() && hosts_.may_grow(first->second.held);
    users_.changed(user, hosts_.waiting != 0, any ? first->second.first : 0);
  } else {
    users_.changed(user, !user->second.waiting.empty(), first_of(user->second));
  }
  eligible_wait_.store(users_.eligible != 0, std::memory_order_seq_cst);
}

const std::atomic<bool>& EStackShares::take(Holder holder) {
  change(holder, [](Sharers& of, One& one) { ++one.held, ++of.in_use; });
  return users_.ones.find(holder.user)->second.waits;
}

// ---- Calls that wait ----

void EStackShares::enter(WaitingCall call, bool at_front) {
  const Holder holder = call.holder;
  std::list<WaitingCall>& line = one_of(holder).waiting;
  std::list<WaitingCall>& place = call.astack->waiting->here;
  place.front() = std::move(call);
  line.splice(at_front ? line.begin() : line.end(), place);
  ++own(holder).waiting;
  changed(holder);
}

bool EStackShares::add(WaitingCall call) {
  if (call.astack->waiting->here.empty()) return false;
  call.number = ++last_number_;
  enter(std::move(call), false);
  return true;
}

WaitingCall EStackShares::take_out(Holder holder, ServedAStack& astack) {
  WaitingPlace& place = *astack.waiting;
  WaitingCall taken = std::exchange(*place.call, {});  // the place no longer holds its binding
  place.here.splice(place.here.end(), one_of(holder).waiting, place.call);
  --own(holder).waiting;
  changed(holder);
  return taken;
}

bool EStackShares::remove(Holder holder, ServedAStack& astack) {
  if (!astack.waiting->here.empty()) return false;
  (void)take_out(holder, astack);
  return true;
}

std::optional<Holder> EStackShares::first_in_line(bool if_refused) const {
  const auto user = users_.first_in_line();
  if (user == users_.ones.end() || users_.may_grow(user->second.held) == if_refused) return std::nullopt;
  const Holder holder(static_cast<uid_t>(user->first));
  return holder.remote() ? Holder(holder.user, hosts_.first_in_line()->first) : holder;
}

std::optional<WaitingCall> EStackShares::next() {
  const auto holder = first_in_line(false);
  if (!holder) return std::nullopt;
  return take_out(*holder, *one_of(*holder).waiting.front().astack);
}

std::optional<Holder> EStackShares::refused_host() const {
  const auto host = hosts_.first_in_line();
  if (host == hosts_.ones.end() || hosts_.may_grow(host->second.held)) return std::nullopt;
  return Holder(shim::kNobodyHere.uid, host->first);
}

void EStackShares::clear() {
  for (Sharers* const all : {&users_, &hosts_}) {
    for (auto one = all->ones.begin(); one != all->ones.end();) {
      std::list<WaitingCall>& line = one++->second.waiting;  // take_out() may erase the entry with its last call
      for (std::size_t left = line.size(); left != 0; --left) (void)take_out(line.front().holder, *line.front().astack);
    }
  }
}

std::size_t EStackShares::waiting(Holder holder) const {
  const Sharers& among = own(holder);
  const auto found = among.ones.find(among.key(holder));
  return found != among.ones.end() ? found->second.waiting.size() : 0;
}

// ---- E-stacks that execute nothing ----

bool EStackShares::may_take_from_other(Holder holder, Holder from, std::size_t got, std::size_t leaving) const {
  const Sharers& between = shared_by(holder, from);
  // A host that may not have another beside other hosts would take from other users in vain.
  if (holder.remote() && !from.remote() && !hosts_.may_grow(hosts_.held(holder) + got)) return false;
  return between.may_take(between.held(holder) + got, between.held(from) - leaving);
}

bool EStackShares::take_in_search(Holder holder, Holder from, std::size_t& got) {
  if (holder == from) return true;
  Sharers& between = holder.remote() && from.remote() ? hosts_ : users_;
  std::size_t& leaving = between.ones.find(between.key(from))->second.leaving;
  if (!may_take_from_other(holder, from, got, leaving)) return false;
  ++leaving;
  ++got;
  return true;
}

}  // namespace lrpc::server
