#include "netrpc/protocols/paired/paired.h"

namespace lrpc::netrpc {

ProtocolKind paired_kind() {
  return {
      .name = "PAIRED",
      .summary = "the paired message protocol: request and reply, at most once, in segments of a kilobyte",
      .gives = Service::transaction,
      .tells_ports_apart = true,
      .below = {{"the protocol that carries the segments", Service::datagram}},
      .options =
          {{"max_retry", OptionType::number, "times that a segment or a probe is sent again; default 14", false, "0",
            "1000"},
           {"initial_timeout", OptionType::duration, "before the round trip has been measured; default 50ms"},
           {"minimum_timeout", OptionType::duration, "however short the round trip is; default 1ms"},
           {"longest_timeout", OptionType::duration, "after it has been doubled; default 1s"},
           {"reply_timeout", OptionType::duration,
            "how long the next request may take to acknowledge a reply; default 500ms"},
           {"probe", OptionType::duration, "the first interval between probes; default 500ms"},
           {"longest_probe", OptionType::duration, "the longest; default 300s"},
           {"no_activity", OptionType::duration, "how long state is kept between calls, at least; default 180s"},
           {"sessions", OptionType::number, "at the server: more are refused; default 4096"},
           {"sessions_per_host", OptionType::number, "the same for one host, at whichever ports; default 1024"},
           {"memory", OptionType::number,
            "bytes of buffers for messages that are being received, and as many again for replies; default 16777216"},
           {"max_message", OptionType::number, "bytes of a request or a reply, at most 1048576; default 65536"}},
      .make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
        PairedOptions options;
        const Options& given = parts.options;
        options.max_retry = static_cast<unsigned>(given.number("max_retry", options.max_retry));
        options.initial_timeout = given.duration("initial_timeout", options.initial_timeout);
        options.minimum_timeout = given.duration("minimum_timeout", options.minimum_timeout);
        options.longest_timeout = given.duration("longest_timeout", options.longest_timeout);
        options.reply_timeout = given.duration("reply_timeout", options.reply_timeout);
        options.probe = given.duration("probe", options.probe);
        options.longest_probe = given.duration("longest_probe", options.longest_probe);
        options.no_activity = given.duration("no_activity", options.no_activity);
        options.sessions = given.number("sessions", options.sessions);
        options.sessions_per_host = given.number("sessions_per_host", options.sessions_per_host);
        options.memory = given.number("memory", options.memory);
        options.max_message = given.number("max_message", options.max_message);
        if (options.max_message > std::size_t{1} << 20)
          return Error{Errc::invalid_argument, "max_message must be at most 1048576: segments have numbers of 16 bits"};
        for (const Duration time : {options.initial_timeout, options.minimum_timeout, options.longest_timeout,
                                    options.reply_timeout, options.probe, options.longest_probe, options.no_activity})
          if (time < std::chrono::microseconds(1))
            return Error{Errc::invalid_argument, "the times must be at least 1us"};
        // A server that forgets a request while its client still repeats it would execute it twice.
        if (options.no_activity / (options.max_retry + 1) < options.longest_timeout)  // their product may not fit
          return Error{Errc::invalid_argument, "no_activity must be longer than max_retry times longest_timeout"};
        return make_paired(parts.host, parts.name, *parts.below.front(), options);
      }};
}

}  // namespace lrpc::netrpc
