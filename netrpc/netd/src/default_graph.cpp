#include "default_graph.h"

#include <fmt/format.h>

#include "lrpc/netrpc/path/broker.h"

namespace lrpc::netd {

namespace {
/// As a quoted text of a graph.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}
}  // namespace

std::string default_graph(const DefaultGraph& choice) {
  const std::string address = to_string(choice.address);
  std::string text;
  std::string top;
  if (choice.udp) {
    text = fmt::format("udp      = UDP(address = \"{}\");\nfragment = FRAGMENT over udp;\n", address);
    top = "fragment";
  } else {
    text = fmt::format(
        "eth      = ETH(interface = {});\n"
        "ip       = IP(address = \"{}\");\n"
        "hosts    = VIPHOSTS over eth;\n"
        "vipaddr  = VIPADDR over eth, ip, hosts;\n"
        "fragment = FRAGMENT over vipaddr;\n"
        "vipsize  = VIPSIZE over vipaddr, fragment;\n",
        quoted(choice.interface), address);
    top = "vipsize";
  }
  if (choice.authenticated) {
    text += fmt::format("auth     = AUTH(keys = {}) over {};\n", quoted(choice.keys), top);
    top = "auth";
  }
  // As many channels as the broker has calls under way to one host, and some for its own commands. A call ends by the
  // silence of its host at the same time as an idle binding, and replies are kept for longer than that.
  const auto silence = netpath::BrokerOptions::kSilence.count();
  text += fmt::format(
      "channel  = CHANNEL(give_up = {}s, reply_life = {}s) over {};\n"
      "select   = SELECT(channels = 288) over channel;\n",
      silence, silence + 10, top);
  // Sun RPC's clients and servers are anybody's: they have no keys, and clients can claim any identity. As many calls
  // to one server as the broker has under way.
  if (choice.sun_port != 0 || choice.calls_sun) {
    const bool serves = choice.sun_port != 0;
    const std::string at =
        choice.sun_address.known() ? fmt::format(", address = \"{}\"", to_string(choice.sun_address)) : "";
    text += fmt::format(
        "sun_udp  = UDP({0}, peer_ports = any);\n"
        "pairs    = REQUEST_REPLY over sun_udp;\n"
        "sun_call = SUN_CALL(channels = 288) over pairs;\n"
        "sun_auth = AUTH_NONE over sun_call;\n"
        "sun      = SUN_SELECT over sun_auth;\n"
        "sun_tcp  = TCP{1};\n"
        "pairs_t  = REQUEST_REPLY over sun_tcp;\n"
        "call_t   = SUN_CALL(channels = 288) over pairs_t;\n"
        "auth_t   = AUTH_NONE over call_t;\n"
        "sun_t    = SUN_SELECT over auth_t;\n",
        serves ? fmt::format("local_port = {}{}", choice.sun_port, at) : "local_ports = 0",
        serves ? fmt::format("(port = {}{})", choice.sun_port, at) : "");
  }
  return text;
}

}  // namespace lrpc::netd
