#include "lrpc/detail/shim/call/value.h"

#include <stdexcept>

namespace lrpc::detail {

void throw_text_too_long(std::size_t size, std::size_t most) {
  std::string text = "a text of ";
  text.append(std::to_string(size)).append(" bytes for an lrpc::String<").append(std::to_string(most)).append(">");
  throw std::length_error(text);
}

}  // namespace lrpc::detail
