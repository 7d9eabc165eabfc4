#include "netrpc/protocols/forwarding/forwarding_select.h"

#include <charconv>

#include "netrpc/protocols/select/protocol.h"
#include "netrpc/src/header_room.h"
#include "netrpc/src/host_shares.h"
#include "netrpc/src/spares.h"

namespace lrpc::netrpc {

namespace {

class ForwardingSelect final : public SelectProtocol {
 public:
  ForwardingSelect(Host& host, std::string name, Protocol& below, const ForwardingSelectOptions& options)
      : SelectProtocol(host, std::move(name), below, options.select, protocol_numbers::kForwardingSelect),
        options_(options) {}

  using SelectProtocol::enable_below;

 protected:
  void unserved(SelectServerSession& session, const SelectHeader& header, Message&& request) noexcept override;

 private:
  /// A request that is on its way to the host that serves it. The object is used again.
  class Forward final : public Transaction {
   public:
    explicit Forward(ForwardingSelect& protocol) : protocol_(protocol) {}
    void completed(Errc outcome, Message reply) noexcept override {
      const SessionRef to = std::move(session);
      share = {};
      protocol_.forwards_.give_back(*this);
      // The request was not too long for the client's link, but is for the next one.
      if (outcome == Errc::message_too_long) outcome = Errc::call_lost;
      static_cast<SelectServerSession&>(*to).finish(select_status(outcome), std::move(reply));
    }
    SessionRef session;      ///< Where it came from.
    HostShares::Part share;  ///< Of the buffers, for the host that it goes to.

   private:
    ForwardingSelect& protocol_;
  };

  /// Requests that are forwarded and not answered take one kPartOfPool-th of this host's buffers at most; those to one
  /// host, its fair share of that. So a host that is slow leaves buffers for requests to others.
  static constexpr std::size_t kPartOfPool = 4;

  const ForwardingSelectOptions options_;
  HostShares shares_;  ///< Outlives the forwards.
  Spares<Forward> forwards_;
};

void ForwardingSelect::unserved(SelectServerSession& session, const SelectHeader& header, Message&& request) noexcept {
  const auto route = options_.routes.find(header.command);
  if (route == options_.routes.end()) return SelectProtocol::unserved(session, header, std::move(request));
  if (header.status >= options_.hops) {
    ++counted.refused;
    return session.finish(SelectHeader::kLoop, Message(host().pool()));
  }
  Result<ChannelPool*> pool = pools().to(route->second);
  if (!pool) {
    const bool busy = pool.code() == Errc::limit_reached;
    return session.finish(busy ? SelectHeader::kBusy : SelectHeader::kUnreachable, Message(host().pool()));
  }
  const SelectHeader onwards{SelectHeader::kRequest, header.command, static_cast<std::uint8_t>(header.status + 1)};
  const HostKey next{host().hash_seed(), route->second};
  const std::size_t bytes = request.footprint();
  HostShares::Part share;
  if (shares_.has_room(next, bytes, host().pool().limit() / kPartOfPool)) share = shares_.take(next, bytes);
  Forward* const forward = share && push_header(onwards, request) ? forwards_.take(*this) : nullptr;
  if (forward == nullptr) {
    ++counted.refused;
    request.clear();
    return session.finish(SelectHeader::kBusy, Message(host().pool()));
  }
  forward->session = SessionRef(&session);
  forward->share = std::move(share);
  (*pool)->call(std::move(request), *forward, kNoLimit);  // the client applies its own timeout
}

/// "7=10.0.0.3, 8=10.0.0.4"
Result<std::map<std::uint16_t, HostAddress>> parse_routes(std::string_view text) {
  std::map<std::uint16_t, HostAddress> routes;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (one.starts_with(' ')) one.remove_prefix(1);
    while (one.ends_with(' ')) one.remove_suffix(1);
    std::uint16_t command = 0;
    const auto [rest, error] = std::from_chars(one.data(), one.data() + one.size(), command);
    const std::string_view host = one.substr(static_cast<std::size_t>(rest - one.data()));
    const std::optional<HostAddress> address = host.starts_with('=') ? parse_host(host.substr(1)) : std::nullopt;
    if (!address && host.starts_with('=') && host.find(':') != std::string_view::npos)
      return Error{Errc::invalid_argument, "routes: " + why_no_host(host.substr(1))};
    if (error != std::errc() || command == 0 || !address)
      return Error{Errc::invalid_argument, "routes: '" + std::string(one) + "' is not COMMAND=HOST, as in 7=10.0.0.3"};
    routes[command] = *address;
  }
  return routes;
}

}  // namespace

Result<std::unique_ptr<Protocol>> make_forwarding_select(Host& host, std::string name, Protocol& below,
                                                         const ForwardingSelectOptions& options) {
  auto protocol = std::make_unique<ForwardingSelect>(host, std::move(name), below, options);
  // This host forwards even if it serves nothing.
  if (Status status = protocol->enable_below(); !status) return status.error();
  return protocol;
}

ProtocolKind forwarding_select_kind() {
  return channel_pool_kind(
      "FORWARDING_SELECT", "SELECT that passes requests on to the host that serves them",
      {{"routes", OptionType::text, "which hosts serve what is not served here: \"7=10.0.0.3, 8=10.0.0.4\""},
       {"hops", OptionType::number, "hosts that may forward one request, 1 to 255; default 4"}},
      [](const InstanceParts& parts, const ChannelPoolOptions& select) -> Result<std::unique_ptr<Protocol>> {
        ForwardingSelectOptions options;
        options.select = select;
        const std::uint64_t hops = parts.options.number("hops", options.hops);
        if (hops < 1 || hops > 255) return Error{Errc::invalid_argument, "hops must be from 1 to 255"};
        options.hops = static_cast<std::uint8_t>(hops);
        auto routes = parse_routes(parts.options.text("routes"));
        if (!routes) return routes.error();
        options.routes = std::move(*routes);
        return make_forwarding_select(parts.host, parts.name, *parts.below.front(), options);
      });
}

}  // namespace lrpc::netrpc
