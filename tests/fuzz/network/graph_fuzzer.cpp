// Attacks the parser of graph descriptions. An accepted graph must also be drawn without harm.
#include <cstdint>
#include <string_view>

#include "lrpc/netrpc/all_kinds.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const lrpc::netrpc::ProtocolKinds kinds = lrpc::netrpc::all_kinds();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto description = lrpc::netrpc::GraphDescription::parse(text, kinds)) {
    (void)description->draw_text();
    (void)description->draw_svg();
  }
  return 0;
}
