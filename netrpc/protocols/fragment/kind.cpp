#include "netrpc/protocols/fragment/fragment.h"

namespace lrpc::netrpc {

ProtocolKind fragment_kind() {
  ProtocolKind kind;
  kind.name = "FRAGMENT";
  kind.summary = "large messages in up to 16 fragments; what is lost is asked for";
  kind.gives = Service::datagram;
  kind.below = {{"the protocol that carries the fragments", Service::datagram}};
  kind.options = {
      {"fragments", OptionType::number, "of one message at most, 1 to 16 (16)"},
      {"fragment_size", OptionType::number, "bytes of data in one (what the protocol below carries uncut)"},
      {"saved", OptionType::number, "messages kept for each session in case of a request (32)"},
      {"saved_bytes", OptionType::number, "bytes kept by all sessions together (8388608)"},
      {"reassemblies", OptionType::number, "incomplete messages from one peer (16)"},
      {"all_reassemblies", OptionType::number, "incomplete messages from all peers (256)"},
      {"incomplete_bytes", OptionType::number, "bytes of all incomplete messages together (8388608)"},
      {"requests", OptionType::number, "requests in vain for missing fragments of one message (20)"},
      {"sessions", OptionType::number, "sessions at once (4096)"},
      {"idle", OptionType::duration, "after which an unused session is dropped (60s)"},
  };
  kind.make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    FragmentOptions options;
    const Options& given = parts.options;
    options.fragments = given.number("fragments", options.fragments);
    options.fragment_size = given.number("fragment_size", options.fragment_size);
    options.saved = given.number("saved", options.saved);
    options.saved_bytes = given.number("saved_bytes", options.saved_bytes);
    options.reassemblies = given.number("reassemblies", options.reassemblies);
    options.all_reassemblies = given.number("all_reassemblies", options.all_reassemblies);
    options.incomplete_bytes = given.number("incomplete_bytes", options.incomplete_bytes);
    options.requests = static_cast<unsigned>(given.number("requests", options.requests));
    options.sessions = given.number("sessions", options.sessions);
    options.idle = given.duration("idle", options.idle);
    return make_fragment(parts.host, parts.name, *parts.below.front(), options);
  };
  return kind;
}

}  // namespace lrpc::netrpc
