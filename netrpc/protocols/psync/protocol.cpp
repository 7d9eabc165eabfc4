#include "netrpc/protocols/psync/protocol.h"

#include "lrpc/netrpc/session_cache.h"
#include "netrpc/protocols/psync/psync.h"
#include "netrpc/src/dropped.h"
#include "netrpc/src/header_room.h"

namespace lrpc::netrpc {

namespace psync {

Result<SessionRef> Psync::open(Protocol& high, const ParticipantSet& participants) {
  if (Status port = refuse_port(*this, participants); !port) return port.error();
  const Key key = key_of(participants);
  if (Conversation** const known = conversations_.resolve(key)) {
    if (&(*known)->high() == &high) return SessionRef(*known);
    return Error{Errc::name_taken, name() + ": another protocol takes part in this conversation"};
  }
  Result<SessionRef> made = Conversation::open(*this, high, participants);
  if (made) conversations_.bind(key, static_cast<Conversation*>(made->get()));
  return made;
}

void Psync::demux(Session& lower, Message packet) noexcept {
  const auto header = Header::of(packet);
  if (!header) return dropped(counted.malformed);
  Conversation** const known = conversations_.resolve({header->protocol, header->group});
  if (known == nullptr) return dropped(counted.no_session);
  ++counted.received;
  (*known)->arrived(peer_host(lower, lower.participants()), *header, packet);
}

Errc Psync::control(control::Request& request) noexcept {
  if (told_statistics(request, conversations_.size())) {
    std::size_t& state = std::get<control::Statistics>(request).state;
    conversations_.for_each([&](const Key&, const Conversation* one) { state += one->kept(); });
    return Errc::ok;
  }
  if (std::holds_alternative<control::AdvertisedMaximum>(request)) return Errc::not_supported;  // asked from below
  if (std::holds_alternative<control::DropIdle>(request)) return Errc::ok;
  return less_header(below_.control(request), request, Header::kMost);
}

}  // namespace psync

ProtocolKind psync_kind() {
  return {
      .name = "PSYNC",
      .summary = "messages among the members of a group, in the order of their contexts",
      .gives = Service::datagram,
      .below = {{"the protocol that carries its messages", Service::datagram}},
      .options = {{"window", OptionType::number, "messages of a member that not all have, 1 to 4096; default 64"},
                  {"interval", OptionType::duration, "after which what is missing is asked for again; default 20ms"},
                  {"silence", OptionType::duration, "after which nobody waits for a member; default 5s"}},
      .make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
        psync::PsyncOptions options;
        const std::uint64_t window = parts.options.number("window", options.window);
        options.interval = parts.options.duration("interval", options.interval);
        options.silence = parts.options.duration("silence", options.silence);
        if (window < 1 || window > 4096) return Error{Errc::invalid_argument, "window must be from 1 to 4096"};
        if (options.interval < std::chrono::microseconds(100))
          return Error{Errc::invalid_argument, "interval must be at least 100us"};
        if (options.silence <= options.interval)
          return Error{Errc::invalid_argument, "silence must be more than interval"};
        options.window = static_cast<std::uint32_t>(window);
        auto made = std::make_unique<psync::Psync>(parts.host, parts.name, *parts.below.front(), options);
        if (Status started = made->start(); !started) return started.error();
        return made;
      }};
}

}  // namespace lrpc::netrpc
