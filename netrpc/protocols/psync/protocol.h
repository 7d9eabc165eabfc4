// PSYNC's protocol object: finds the conversation that a packet belongs to.
#pragma once

#include "lrpc/netrpc/map.h"
#include "netrpc/protocols/psync/conversation.h"

namespace lrpc::netrpc::psync {

class Psync final : public Protocol {
 public:
  Psync(Host& host, std::string name, Protocol& below, const PsyncOptions& options)
      : Protocol(host, std::move(name)), options_(options), below_(below) {}
  ~Psync() override {
    if (enabled_) below_.open_disable(*this, below_participants({}));
  }
  /// Messages may arrive from now on.
  [[nodiscard]] Status start() {
    Status done = below_.open_enable(*this, below_participants({}));
    enabled_ = bool(done);
    return done;
  }

  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override;
  void demux(Session& lower, Message packet) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

  [[nodiscard]] const PsyncOptions& options() const noexcept { return options_; }
  [[nodiscard]] Result<SessionRef> open_below(HostAddress member) {
    return below_.open(*this, below_participants(member));
  }
  /// The life of this host in a conversation that begins now: another one each time, because its messages begin with
  /// number 1 again.
  [[nodiscard]] BootId next_life() noexcept {
    BootId life = 0;
    while (life == 0) life = host().boot_id() + begun_++;
    return life;
  }
  void ended(const Conversation& conversation) noexcept {
    conversations_.unbind(key_of(conversation.participants()), &conversation);
  }
  [[nodiscard]] control::Statistics& statistics() noexcept { return counted; }

 private:
  struct Key {
    ProtocolNumber protocol = 0;
    HostAddress group;
    [[nodiscard]] std::uint64_t hash() const noexcept { return mix(0, std::uint64_t{group.value} << 32 | protocol); }
    friend bool operator==(const Key&, const Key&) = default;
  };
  [[nodiscard]] static Key key_of(const ParticipantSet& participants) noexcept {
    return {participants.protocol, participants.remote.host};
  }
  [[nodiscard]] ParticipantSet below_participants(HostAddress remote) const noexcept {
    return {protocol_numbers::kPsync, {.host = host().address(), .ethernet = {}}, {.host = remote, .ethernet = {}}};
  }

  const PsyncOptions options_;
  Protocol& below_;
  bool enabled_ = false;
  BootId begun_ = 0;  ///< Conversations.
  Map<Key, Conversation*> conversations_;
};

}  // namespace lrpc::netrpc::psync
