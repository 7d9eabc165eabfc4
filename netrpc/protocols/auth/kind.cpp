#include "netrpc/protocols/auth/auth.h"
#include "netrpc/protocols/auth/protocol.h"

namespace lrpc::netrpc {

namespace {

std::optional<auth::Ciphers> ciphers_named(std::string_view name) noexcept {
  if (name == "best") return auth::Ciphers{0xff};
  if (name == "chacha20-poly1305") return static_cast<auth::Ciphers>(auth::Cipher::chacha20_poly1305);
  if (name == "aes256-gcm") return static_cast<auth::Ciphers>(auth::Cipher::aes256_gcm);
  return std::nullopt;
}

Result<auth::Ciphers> ciphers_of(const Options& options) {
  const std::string cipher(options.text("cipher", "best"));
  const auto wanted = ciphers_named(cipher);
  if (!wanted) return Error{Errc::invalid_argument, "cipher '" + cipher + "': chacha20-poly1305, aes256-gcm or best"};
  const auto ciphers = static_cast<auth::Ciphers>(*wanted & auth::available_ciphers());
  if (ciphers == 0)
    return Error{Errc::not_supported, "cipher '" + cipher + "': this processor has no instructions for it"};
  return ciphers;
}

}  // namespace

Status check_auth(const Options& options) {
  if (const auto ciphers = ciphers_of(options); !ciphers) return ciphers.error();
  const auto keys = auth::KeyRing::read(options.text("keys"));
  return keys ? Status() : keys.error();
}

ProtocolKind auth_kind() {
  ProtocolKind kind;
  kind.name = "AUTH";
  kind.summary = "authentication and privacy: hosts without the key get nothing";
  kind.identifies_hosts = true;
  kind.below = {{"the protocol that carries sealed messages", Service::datagram}};
  kind.options = {
      {"keys", OptionType::text, "the file of keys, one line a host or network", true},
      {"rekey_messages", OptionType::number, "messages sealed with one key (1073741824)"},
      {"rekey_after", OptionType::duration, "age of a key (3600s)"},
      {"cipher", OptionType::text, "chacha20-poly1305, aes256-gcm, or the best that both hosts have (best)"},
      {"pending", OptionType::number, "messages to one host that wait for its first handshake (16)", false, "1",
       "65536"},
      {"peers", OptionType::number, "hosts that state is kept for (4096)"},
      {"sessions", OptionType::number, "sessions at once (4096)"},
      {"idle", OptionType::duration, "after which the state of a host that nobody talks to is dropped (300s)", false,
       "1ms"},
  };
  kind.make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    auth::AuthOptions options;
    options.keys = parts.options.text("keys");
    options.settings.rekey_messages = parts.options.number("rekey_messages", options.settings.rekey_messages);
    options.settings.rekey_after = parts.options.duration("rekey_after", options.settings.rekey_after);
    options.settings.anywhere = parts.many_ports_below;
    options.settings.pending = parts.options.number("pending", options.settings.pending);
    options.peers = parts.options.number("peers", options.peers);
    options.sessions = parts.options.number("sessions", options.sessions);
    options.idle = parts.options.duration("idle", options.idle);
    if (options.peers == 0 || options.sessions == 0 || options.settings.pending == 0 ||
        options.settings.rekey_messages == 0)
      return Error{Errc::invalid_argument, "peers, sessions, pending and rekey_messages must be at least 1"};
    if (options.idle <= Duration::zero() || options.settings.rekey_after <= Duration::zero())
      return Error{Errc::invalid_argument, "idle and rekey_after must be more than nothing"};
    const auto ciphers = ciphers_of(parts.options);
    if (!ciphers) return ciphers.error();
    options.settings.ciphers = *ciphers;
    auto keys = auth::KeyRing::read(options.keys);
    if (!keys) return keys.error();
    auto protocol = std::make_unique<auth::AuthProtocol>(parts.host, parts.name, *parts.below.front(),
                                                         std::move(options), std::move(keys).value());
    if (auto enabled = protocol->enable_below(); !enabled) return enabled.error();
    return protocol;
  };
  return kind;
}

}  // namespace lrpc::netrpc
