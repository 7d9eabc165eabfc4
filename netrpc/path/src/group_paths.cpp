// Paths to groups of hosts: name@group (Bhatti and Schlichting §4.2 under LRPC §5.1).
#include <algorithm>
#include <array>
#include <map>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "group_members.h"
#include "lrpc/detail/client/remote/group_call.h"
#include "lrpc/detail/server/run.h"
#include "lrpc/detail/shim/call/call_word.h"
#include "rounds.h"

namespace lrpc::netpath {
namespace {

using server::failed;
using std::chrono::milliseconds;

/// The shortest pause before another attempt, if the members did not know the name, or no longer the binding.
constexpr milliseconds kRebindPause{250};
/// How long to wait for each member: in the broker's own thread, and in a second attempt while a group is bound, if no
/// more than half of the members could be bound with kFirstPatience each.
constexpr milliseconds kRebindPatience{2'000};
constexpr milliseconds kFirstPatience{500};

}  // namespace

// ---- binding ----

Status PathService::bind_members(const CallContext& context, const std::shared_ptr<Path>& path, std::string name,
                                 Group group, const Needed& needed, BindMessage message) {
  const std::string called = "group '" + name + "'";
  if (group.members.size() > kMaxMembers)
    return Error{Errc::limit_reached, called + " has more than " + std::to_string(kMaxMembers) + " members"};
  if (options_.own_address != 0 && std::ranges::count(group.members, options_.own_address) != 0)
    return Error{Errc::invalid_argument, called +
                                             " includes this machine, which cannot call itself over the network: "
                                             "call it from a host that is no member"};
  // A GROUP_CALL has a longer prologue than a CALL, with which fits() counts.
  const std::size_t more = group_prologue(group.members.size()) - kPrologue;
  group.sizes.request -= std::min(group.sizes.request, more);
  if (Status small = fits(needed, group.sizes, "to " + called); !small) return small;
  const std::uint32_t wait_ms = std::exchange(message.wait_ms, 0);
  path->members = std::make_unique<Members>(std::move(name), group.members, needed, std::move(message));
  const auto began = Clock::now();
  for (;;) {
    std::vector<Status> bound(group.members.size(), Errc::limit_reached);
    const auto bind = [&](milliseconds patience) {
      for_each_host(bound.size(), [&](std::size_t i) {
        if (!bound[i]) bound[i] = bind_member(*path, i, patience);
      });
      return static_cast<std::size_t>(std::ranges::count_if(bound, &Status::operator bool));
    };
    // If most members are there, the client does not wait long for the others, which may be dead.
    std::size_t there = bind(kFirstPatience);
    if (there <= bound.size() / 2) there = bind(kRebindPatience);
    if (there != 0) {
      {
        std::lock_guard lock(mutex_);
        groups_.emplace(place_of(*path), path);
      }
      if (there != bound.size()) seek_unbound(*path->members);
      return {};
    }
    // None is bound. The reason of a member that could be asked tells more than that of one that could not be reached.
    const auto told =
        std::ranges::find_if(bound, [](const Status& one) { return one.code() != Errc::remote_unavailable; });
    const Status& why = told != bound.end() ? *told : bound.front();
    const auto waited = Clock::now() - began;
    const bool in_time = wait_ms == shim::ImportRequest::kForever || waited < milliseconds(wait_ms);
    if (why.code() != Errc::name_unknown || !in_time || context.abandoned()) return why;
    std::this_thread::sleep_for(kRebindPause);
  }
}

Status PathService::bind_member(Path& path, std::size_t member, milliseconds patience) {
  Members& members = *path.members;
  HostAddress host = 0;
  {
    std::lock_guard lock(members.mutex);
    host = members.all[member].host;
    members.all[member].tried = options_.now();
  }
  const std::string at = "member " + GroupMember{host}.str() + " of group '" + members.name + "'";
  Status bound = bind_member_at(path, member, host, at, patience);
  std::string why = bound ? std::string() : Members::why_not(bound.error(), at);
  std::lock_guard lock(members.mutex);
  members.all[member].why.swap(why);
  return bound;
}

Status PathService::bind_member_at(Path& path, std::size_t member, HostAddress host, const std::string& at,
                                   milliseconds patience) {
  Members& members = *path.members;
  if (Status met = agree_with(host, at, members.needed, patience); !met) return met;
  auto made = std::make_shared<Path>(*this, host, CallAccounts(), path.hash, nullptr);
  const auto key = bind_at(nullptr, host, at, members.message, patience);
  if (!key) return key.error();
  // The members of a group see each other's keys. One could give out another's key as its own, so that that member
  // executes a call in another client's binding.
  made->bound(*key);
  if (!bound_as_member(made, members)) return Error{Errc::bad_message, at + " has the boot id of another one"};
  std::lock_guard lock(members.mutex);
  members.all[member].lost = false;
  members.all[member].path.swap(made);  // the old one ends after the lock
  return {};
}

/// As list_locked(), unless a path to another member has the same boot id. The check and the listing are one step,
/// because two members may answer at the same moment.
bool PathService::bound_as_member(const std::shared_ptr<Path>& path, const Members& members) {
  std::lock_guard lock(mutex_);
  const bool of_another = std::any_of(paths_.begin(), first_of(paths_, 1), [&](const auto& one) {
    const Path& other = *one.first.second;
    return other.host != path->host && other.key().boot == path->key().boot &&
           std::ranges::find(members.all, other.host, &Members::Member::host) != members.all.end();
  });
  if (!of_another) list_locked(path);
  return !of_another;
}

std::vector<std::shared_ptr<PathService::Path>> PathService::paths_to_groups() const {
  std::vector<std::shared_ptr<Path>> found;
  std::lock_guard lock(mutex_);
  found.reserve(groups_.size());
  for (const auto& [address, weak] : groups_)
    if (auto path = weak.lock()) found.push_back(std::move(path));
  return found;
}

void PathService::rebind(bool all) {
  lost_.store(false, std::memory_order_release);
  using Seat = std::pair<std::shared_ptr<Path>, std::size_t>;
  std::map<HostAddress, std::vector<Seat>> by_host;
  std::vector<const std::vector<Seat>*> hosts;
  std::vector<std::shared_ptr<Path>> groups;  // released after the locks
  try {
    groups = paths_to_groups();
    for (const auto& path : groups) {
      std::lock_guard lock(path->members->mutex);
      auto& members = path->members->all;
      for (std::size_t i = 0; i < members.size(); ++i)
        if (!members[i].bound() && (all || std::exchange(members[i].lost, false)))
          by_host[members[i].host].emplace_back(path, i);
    }
    for (const auto& [host, seats] : by_host) hosts.push_back(&seats);
  } catch (const std::bad_alloc&) {  // the next keepalive tries again
  }
  const milliseconds limit = patience(kRebindPatience, options_.keepalive, hosts.size());
  for_each_host(hosts.size(), [&](std::size_t i) {
    // If a host cannot be reached, only the first bind to it waits. What a host is too slow for waits for the next
    // keepalive.
    const auto until = Clock::now() + limit;
    for (const auto& [path, member] : *hosts[i])
      if (bind_member(*path, member, limit).code() == Errc::remote_unavailable || Clock::now() >= until) return;
  });
}

// ---- calls ----

bool PathService::Answers::counts(std::span<const std::byte> reply) noexcept {
  const auto answer = decode_call_answer(reply);
  return answer && (answer->status & shim::call_status::kFailed) == 0;
}

void PathService::Answers::said(HostAddress member, Errc outcome, std::span<const std::byte> reply) noexcept {
  const auto answer = outcome == Errc::ok ? decode_call_answer(reply) : std::nullopt;
  const bool told = outcome == Errc::limit_reached || outcome == Errc::message_too_long || outcome == Errc::call_lost;
  if (!answer) return put(member, failed(told ? outcome : Errc::call_failed), {});
  put(member, answer->status, answer->image);
  if (!answer->ended && failure_ == 0 && (answer->status & shim::call_status::kFailed) != 0) {
    failure_ = answer->status;
    text_size_ = std::min(answer->image.size(), text_.size());
    std::ranges::copy(answer->image.first(text_size_), text_.begin());
  }
  if (!answer->ended) return;
  // The list of hosts does not change, so this needs no lock.
  const auto& all = members_.all;
  const auto who = std::ranges::find(all, member, &Members::Member::host);
  if (who != all.end()) ended_.set(static_cast<std::size_t>(who - all.begin()));
}

std::span<const BindingKey> PathService::Answers::take_keys() {
  std::lock_guard lock(members_.mutex);
  for (std::size_t i = 0; i < members_.all.size(); ++i) keys_[i] = members_.all[i].key();
  return std::span(keys_).first(members_.all.size());
}

void PathService::Answers::put(HostAddress member, std::uint16_t status, std::span<const std::byte> image) noexcept {
  const std::span<std::byte> left = room_.subspan(size_);
  if (left.size() < client::GroupReplies::kHead) return;
  if (left.size() - client::GroupReplies::kHead < image.size()) {
    status = failed(Errc::limit_reached);
    image = {};
  }
  size_ += client::GroupReplies::put({member, status, image}, left);
}

std::uint16_t PathService::call_members(Path& path, CallPrologue prologue, std::span<const std::byte> image,
                                        std::span<std::byte> reply, std::size_t& size, Answers& answers) {
  const std::span<const BindingKey> keys = answers.take_keys();
  std::array<std::byte, kMaxGroupCallMessage> request;
  const std::size_t before = group_prologue(keys.size());
  encode_group_prologue(prologue, keys, image.size(), request);
  // The client may change its image meanwhile: from here on there is a copy.
  std::ranges::copy(image, request.begin() + static_cast<std::ptrdiff_t>(before));
  const milliseconds limit(prologue.remaining_ms);
  const auto begun = Clock::now();
  const Errc sent = transport_.call_group(path.host, static_cast<std::uint16_t>(Command::group_call),
                                          std::span(request).first(before + image.size()), reply, size, answers,
                                          limit.count() != 0 ? limit : milliseconds(kNoLimit), gone(path));
  if (answers.any_ended()) note_lost(*path.members, answers);
  if (sent == Errc::ok) return 0;
  // Otherwise the composition has ended the call (BOUNDED), not the caller's deadline.
  const bool late = limit.count() != 0 && Clock::now() - begun >= limit;
  if (sent == Errc::timed_out && late) return failed(Errc::call_aborted);
  if (sent == Errc::call_lost) return failed(sent);
  return failed(wanting(sent) ? what_wants(sent) : Errc::call_failed);
}

/// Has the broker's own thread bind the members that are not bound.
void PathService::seek_unbound(Members& members) {
  {
    std::lock_guard lock(members.mutex);
    for (Members::Member& one : members.all) one.lost = !one.bound();
  }
  want_rebind();
}

void PathService::want_rebind() {
  lost_.store(true, std::memory_order_release);
  if (on_work) on_work();
}

/// Has members that have answered that they do not know the binding bound again at once; if the last attempt was less
/// than kRebindPause ago, at the next keepalive.
void PathService::note_lost(Members& members, const Answers& answers) {
  bool any = false;
  {
    std::lock_guard lock(members.mutex);
    for (std::size_t i = 0; i < members.all.size(); ++i) {
      Members::Member& one = members.all[i];
      if (!answers.ended(i, one.key())) continue;  // by now it may have been bound anew
      if (one.path != nullptr) one.path->end();
      one.lost = one.lost || options_.now() - one.tried >= kRebindPause;
      any = any || one.lost;
    }
  }
  if (any) want_rebind();
}

NetworkPath::CallResults PathService::call_first(Path& path, const CallPrologue& prologue,
                                                 std::span<const std::byte> image, Buffer& results) {
  std::array<std::byte, kReplyPrologue + kMaxImage> reply;
  std::size_t size = 0;
  Answers answers(*path.members);
  if (const std::uint16_t status = call_members(path, prologue, image, reply, size, answers); status != 0) {
    // Too few members have answered: the error of one of them tells more than that.
    if (status != failed(Errc::call_failed) || answers.failure() == 0) return {.status = status, .ended = false};
    (void)results.assign(answers.text());
    return {.status = answers.failure(), .ended = false};
  }
  const auto answer = decode_call_answer(std::span(reply).first(std::min(size, reply.size())));
  if (!answer || !results.assign(answer->image)) return {.status = failed(Errc::call_failed), .ended = false};
  return {.status = answer->status, .ended = false};
}

Result<NetworkPath::CallAllResults> PathService::CallAll(CallContext& /*context*/, Path& path, std::uint16_t number,
                                                         std::uint32_t limit_ms, std::span<const std::byte> image,
                                                         Buffer& replies) {
  using Results = NetworkPath::CallAllResults;
  if (!path.members) return Results{.status = failed(Errc::not_supported), .members = 0};
  const auto members = static_cast<std::uint16_t>(path.members->all.size());
  const Share share = path.accounts.call();
  if (!share.granted()) return Results{.status = failed(Errc::limit_reached), .members = members};
  std::array<std::byte, kReplyPrologue + kMaxImage> first;
  std::size_t size = 0;
  Answers answers(*path.members, replies.room());
  const CallPrologue prologue{{}, path.hash, number, false, limit_ms};
  const std::uint16_t status = call_members(path, prologue, image, first, size, answers);
  (void)replies.resize(answers.size());
  return Results{.status = status, .members = members};
}

}  // namespace lrpc::netpath
