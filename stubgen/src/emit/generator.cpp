#include "generator.h"

#include "emit.h"

namespace lrpc::stubgen {

std::array<std::string, 3> header_names(std::string_view stem) {
  const std::string base(stem);
  return {base + ".types.h", base + ".client.h", base + ".server.h"};
}

std::array<Header, 3> generate(const Interface& interface, std::string_view stem) {
  auto names = header_names(stem);
  return {Header{std::move(names[0]), emit_types(interface, stem)},
          Header{std::move(names[1]), emit_client(interface, stem)},
          Header{std::move(names[2]), emit_server(interface, stem)}};
}

}  // namespace lrpc::stubgen
