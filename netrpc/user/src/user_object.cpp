#include "lrpc/netrpc/user/user_object.h"

#include <new>
#include <utility>

#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/netrpc/host.h"

namespace lrpc::netuser {

using netrpc::InstanceParts;
using netrpc::Message;
using netrpc::OptionType;
using netrpc::ParticipantSet;
using netrpc::Protocol;
using netrpc::ProtocolKind;
using netrpc::Session;
using netrpc::SessionRef;
namespace control = netrpc::control;

UserObject::UserObject(const InstanceParts& parts, UserOptions options)
    : Protocol(parts.host, parts.name),
      options_(std::move(options)),
      below_(*parts.below.front()),
      queue_(options_.queue) {}

Result<std::unique_ptr<UserObject>> UserObject::make(const InstanceParts& parts, UserOptions options) {
  std::unique_ptr<UserObject> made(new UserObject(parts, std::move(options)));
  // Enabled at once: the process that composes the graph may not be able to open a socket later.
  if (Status enabled = made->below_.open_enable(*made, {made->options_.number, {}, {}}); !enabled)
    return enabled.error();
  return made;
}

UserObject::~UserObject() {
  detach();
  below_.open_disable(*this, {options_.number, {}, {}});
}

Status UserObject::attach() {
  if (attached_) return Error{Errc::name_taken, "another process is '" + options_.name + "'"};
  if (host().short_of_memory()) return Error{Errc::limit_reached, "the graph's process is short of memory"};
  attached_ = true;
  return {};
}

void UserObject::detach() noexcept {
  attached_ = false;
  wanted_ = false;
  queue_.clear();
  queued_bytes_ = 0;
  numbers_.clear();
  passive_.clear();
  sessions_.clear();
  wake_all();
}

Result<SessionNumber> UserObject::open_below(netrpc::HostAddress host, std::uint16_t port) {
  if (sessions_.size() - passive_.size() >= options_.sessions)
    return Error{Errc::limit_reached, "'" + options_.name + "' has as many sessions as it may have"};
  if (this->host().short_of_memory()) return Error{Errc::limit_reached, "the graph's process is short of memory"};
  ParticipantSet participants{.protocol = options_.number, .local = {}, .remote = {}};
  participants.local.host = this->host().address();
  participants.remote.host = host;
  participants.remote.port = port;
  auto session = below_.open(*this, participants);
  if (!session) return session.error();
  if (const auto known = numbers_.find(session->get()); known != numbers_.end()) {
    Open& open = sessions_.at(known->second);
    if (std::exchange(open.passive, false)) passive_.erase(open.place);
    return known->second;
  }
  return keep(std::move(*session), false);
}

Errc UserObject::push(SessionNumber session, std::span<const std::byte> data) {
  if (data.size() > options_.largest) return Errc::message_too_long;
  Session* const found = find(session);
  if (found == nullptr) return Errc::invalid_argument;
  Message message = Message::copy_of_long(host().pool(), data);
  if (!message.allocated()) return Errc::limit_reached;
  ++counted.sent;
  const SessionRef held(found);
  return found->push(std::move(message));
}

Session* UserObject::find(SessionNumber session) noexcept {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : found->second.session.get();
}

void UserObject::close(SessionNumber session) noexcept {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  const SessionRef held = std::move(found->second.session);
  if (found->second.passive) passive_.erase(found->second.place);
  numbers_.erase(held.get());
  sessions_.erase(found);
}

SessionNumber UserObject::keep(SessionRef session, bool passive) {
  const Session* const key = session.get();
  const SessionNumber number = last_ + 1;
  std::list<SessionNumber> place;
  if (passive) place.push_back(number);
  const auto added = sessions_.emplace(number, Open{std::move(session), passive, place.begin()}).first;
  try {
    numbers_.emplace(key, number);
  } catch (...) {
    sessions_.erase(added);
    throw;
  }
  passive_.splice(passive_.end(), place);
  return last_ = number;
}

bool UserObject::take(Upcall& upcall) noexcept {
  if (queue_.empty()) return false;
  upcall = std::move(queue_.front());
  queue_.pop_front();
  queued_bytes_ -= upcall.message.footprint();
  return true;
}

Errc UserObject::open_done(Session& /*lower*/, const ParticipantSet& /*participants*/) noexcept {
  return attached_ && wanted_ ? Errc::ok : Errc::not_supported;
}

void UserObject::demux(Session& lower, Message message) noexcept {
  try {
    arrived(lower, std::move(message));
  } catch (const std::bad_alloc&) {
    ++counted.refused;
  }
}

void UserObject::arrived(Session& lower, Message message) {
  const auto known = numbers_.find(&lower);
  if (!attached_ || (known == numbers_.end() && !wanted_)) {
    ++counted.no_session;
    return;
  }
  // A process that does not take its messages costs the graph no more than this.
  const std::size_t footprint = message.footprint();
  if (host().short_of_memory() || message.size() > UserOptions::kLargest || queue_.size() >= options_.queue ||
      queued_bytes_ + footprint > options_.queue_bytes) {
    ++counted.refused;
    return;
  }
  Upcall upcall{0, lower.participants().remote, known == numbers_.end(), std::move(message)};
  upcall.peer.host = lower.peer();
  if (upcall.opened) {
    if (passive_.size() >= options_.sessions) close(passive_.front());
    upcall.session = keep(SessionRef(&lower), true);
  } else {
    upcall.session = known->second;
    const Open& open = sessions_.at(upcall.session);
    if (open.passive) passive_.splice(passive_.end(), passive_, open.place);
  }
  queue_.push_back(std::move(upcall));
  queued_bytes_ += footprint;
  ++counted.received;
  wake_another();
}

Errc UserObject::control(control::Request& request) noexcept {
  if (control::answered(request, control::AdvertisedMaximum{options_.largest})) return Errc::ok;
  if (told_statistics(request, sessions_.size(), queue_.size())) return Errc::ok;
  return Protocol::control(request);
}

std::string exported_name(const std::string& user) { return std::string(shim::kUserPrefix) + user; }

Result<UserOptions> user_options(const netrpc::Options& options) {
  UserOptions made;
  const auto wrong = [](std::string why) { return Error{Errc::invalid_argument, std::move(why)}; };
  const auto number = options.number("number", 0);
  if (number < 240 || number > 252) return wrong("number is not from 240 to 252: lrpc's own protocols have the others");
  made.number = static_cast<netrpc::ProtocolNumber>(number);
  made.name = options.text("name");
  if (made.name.empty()) return wrong("name is empty: processes find it by its name");
  if (!shim::valid_name(exported_name(made.name)))
    return wrong("name is not one that can be exported as '" + exported_name(made.name) + "': at most " +
                 std::to_string(shim::kMaxNameLength) +
                 " characters with that, printable ASCII without space, '@' and '/'");
  struct Bounded {
    const char* name;
    std::size_t& value;
    std::size_t most;
  };
  for (const Bounded& one : {Bounded{"largest", made.largest, UserOptions::kLargest},
                             Bounded{"sessions", made.sessions, UserOptions::kMostSessions},
                             Bounded{"queue", made.queue, UserOptions::kMostQueue},
                             Bounded{"queue_bytes", made.queue_bytes, std::size_t{64} << 20}}) {
    const std::uint64_t given = options.number(one.name, one.value);
    if (given == 0 || given > one.most)
      return wrong(std::string(one.name) + " is not from 1 to " + std::to_string(one.most));
    one.value = given;
  }
  return made;
}

ProtocolKind user_kind() {
  return {
      .name = "USER",
      .summary = "a process of this machine, which is the protocol",
      .tells_ports_apart = true,
      .below = {{"the protocol that the process uses", netrpc::Service::datagram}},
      .options = {{"name", OptionType::text, "under which processes find it", true},
                  {"number", OptionType::number, "by which the protocol below knows it, from 240 to 252", true},
                  {"largest", OptionType::number,
                   "bytes of a message that the process pushes; default 1500, at most 65536"},
                  {"sessions", OptionType::number, "that the process opens, and as many that peers make; default 256"},
                  {"queue", OptionType::number, "messages that wait for the process; default 256"},
                  {"queue_bytes", OptionType::number, "bytes of them; default 1048576"}},
      .make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
        auto options = user_options(parts.options);
        if (!options) return options.error();
        auto made = UserObject::make(parts, std::move(*options));
        if (!made) return made.error();
        return std::move(*made);
      }};
}

}  // namespace lrpc::netuser
