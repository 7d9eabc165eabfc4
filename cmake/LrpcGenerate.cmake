# lrpc_generate(target file.lrpc ...): the stub generator as a build step. Used by this build, and by programs that
# found the installed package; both have the generator as lrpc::lrpc-stubgen, unless LRPC_STUBGEN names another file.
#
#   lrpc_generate(filesd files.lrpc)            # then: #include "files.server.h"
#
# For each file the headers <name>.types.h, <name>.client.h and <name>.server.h are made in the target's binary
# directory, under generated/<target>, whenever the file or the generator has changed. The target finds them by name,
# and so does who links to it: PUBLIC for a library, INTERFACE for an interface library, PRIVATE for a program. Relative
# paths are relative to the calling CMakeLists.txt.
#
#   lrpc_generate(filesd files.lrpc FUZZ [FUZZ_IMPLEMENTATION Class FUZZ_HEADER header.h])
#
# makes also <name>_fuzzer.cpp and from it the target <name>_fuzz: a fuzzer of the server's entry stubs, which calls
# Class (made anew for each input), or an implementation that does nothing but look. It links what `target` links,
# libFuzzer where the compiler is a clang that has it, else a driver that replays files and makes random inputs for some
# seconds (--seconds N). LRPC_FUZZ_SANITIZE says which sanitizers it is built with (address,undefined). It is not part
# of `all` outside of this project.
#
#   lrpc_generate(filesd files.lrpc XDR 0x20000099)
#
# makes also <name>.x, the interface as this Sun RPC program, for rpcgen; of a single file.

set(LRPC_STUBGEN "" CACHE FILEPATH "Another lrpc-stubgen to make stubs with, for example where this build's cannot run")
set_property(GLOBAL PROPERTY LRPC_VERSION "${lrpc_VERSION}")

# lrpc_find_stubgen(result): the generator, which is a target of this build, or a file that runs here and is of this
# version.
function(lrpc_find_stubgen result)
  set(generator "${LRPC_STUBGEN}")
  if(NOT generator AND TARGET lrpc::lrpc-stubgen)
    get_target_property(imported lrpc::lrpc-stubgen IMPORTED)
    if(NOT imported)
      # A target's name runs by the emulator, if there is one. Without, CMake would look for a program of that name.
      get_target_property(emulator lrpc::lrpc-stubgen CROSSCOMPILING_EMULATOR)
      if(CMAKE_CROSSCOMPILING AND NOT emulator)
        set(${result} $<TARGET_FILE:lrpc::lrpc-stubgen> PARENT_SCOPE)
      else()
        set(${result} lrpc::lrpc-stubgen PARENT_SCOPE)
      endif()
      return()
    endif()
    get_target_property(generator lrpc::lrpc-stubgen LOCATION)
  endif()
  get_property(version GLOBAL PROPERTY LRPC_VERSION)
  get_property(checked GLOBAL PROPERTY LRPC_CHECKED_STUBGEN)
  if(NOT generator OR NOT generator STREQUAL checked)
    set(status "no such file")
    set(said "")
    set(complaint "")
    if(EXISTS "${generator}")
      execute_process(COMMAND "${generator}" --version RESULT_VARIABLE status OUTPUT_VARIABLE said
                      ERROR_VARIABLE complaint OUTPUT_STRIP_TRAILING_WHITESPACE)
    endif()
    if(NOT said STREQUAL "lrpc-stubgen ${version}")
      message(FATAL_ERROR "lrpc_generate needs an lrpc-stubgen ${version} that runs on this machine; set LRPC_STUBGEN "
                          "to its path. '${generator}' is none: ${said} ${complaint} (${status})")
    endif()
    set_property(GLOBAL PROPERTY LRPC_CHECKED_STUBGEN "${generator}")
  endif()
  set(${result} "${generator}" PARENT_SCOPE)
endfunction()

function(lrpc_generate target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "FUZZ" "FUZZ_IMPLEMENTATION;FUZZ_HEADER;XDR" "")
  set(files ${ARG_UNPARSED_ARGUMENTS})
  if(NOT TARGET ${target})
    message(FATAL_ERROR "lrpc_generate: there is no target '${target}'")
  endif()
  if(NOT files)
    message(FATAL_ERROR "lrpc_generate(${target}): name at least one .lrpc file")
  endif()
  if((ARG_FUZZ_IMPLEMENTATION OR ARG_FUZZ_HEADER) AND NOT (ARG_FUZZ AND ARG_FUZZ_IMPLEMENTATION AND ARG_FUZZ_HEADER))
    message(FATAL_ERROR "lrpc_generate(${target}): FUZZ, FUZZ_IMPLEMENTATION and FUZZ_HEADER go together")
  endif()
  if("XDR" IN_LIST ARG_KEYWORDS_MISSING_VALUES OR (DEFINED ARG_XDR AND NOT ARG_XDR))
    message(FATAL_ERROR "lrpc_generate(${target}): XDR needs the number of the Sun RPC program")
  endif()
  list(LENGTH files count)
  if(ARG_XDR AND count GREATER 1)
    message(FATAL_ERROR "lrpc_generate(${target}): XDR numbers one interface; name one file")
  endif()
  lrpc_find_stubgen(generator)
  get_target_property(type ${target} TYPE)
  get_target_property(binary_dir ${target} BINARY_DIR)
  set(out "${binary_dir}/generated/${target}")

  foreach(file IN LISTS files)
    get_filename_component(path "${file}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    get_filename_component(name "${path}" NAME)
    if(NOT name MATCHES "^[A-Za-z0-9._-]+\\.lrpc$")
      message(FATAL_ERROR "lrpc_generate(${target}): '${file}' is not a .lrpc file")
    endif()
    string(REGEX REPLACE "\\.lrpc$" "" stem "${name}")
    set(headers "${out}/${stem}.types.h" "${out}/${stem}.client.h" "${out}/${stem}.server.h")
    set(fuzzer "")
    set(fuzz_option "")
    if(ARG_FUZZ)
      set(fuzzer "${out}/${stem}_fuzzer.cpp")
      set(fuzz_option --fuzz)
    endif()
    set(xdr "")
    set(xdr_option "")
    if(ARG_XDR)
      set(xdr "${out}/${stem}.x")
      set(xdr_option --xdr ${ARG_XDR})
    endif()
    add_custom_command(
      OUTPUT ${headers} ${fuzzer} ${xdr}
      COMMAND "${generator}" "${path}" --out "${out}" ${fuzz_option} ${xdr_option}
      DEPENDS "${path}" "${generator}"
      COMMENT "Generating stubs from ${name}"
      VERBATIM)
    # A target of its own, because headers of an interface library are nobody's sources.
    add_custom_target(${target}.${stem}.lrpc DEPENDS ${headers} ${xdr} SOURCES "${path}")
    add_dependencies(${target} ${target}.${stem}.lrpc)
    if(ARG_FUZZ)
      lrpc_add_fuzzer(${stem}_fuzz ${target} "${fuzzer}" "${out}")
      add_dependencies(${stem}_fuzz ${target}.${stem}.lrpc)
      if(ARG_FUZZ_IMPLEMENTATION)
        target_compile_definitions(${stem}_fuzz PRIVATE "LRPC_FUZZ_IMPLEMENTATION=${ARG_FUZZ_IMPLEMENTATION}"
                                                        "LRPC_FUZZ_HEADER=\"${ARG_FUZZ_HEADER}\"")
        target_include_directories(${stem}_fuzz PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
      endif()
    endif()
  endforeach()

  if(type STREQUAL "INTERFACE_LIBRARY")
    target_include_directories(${target} INTERFACE "$<BUILD_INTERFACE:${out}>")
  elseif(type STREQUAL "EXECUTABLE")
    target_include_directories(${target} PRIVATE "${out}")
  else()
    target_include_directories(${target} PUBLIC "$<BUILD_INTERFACE:${out}>")
  endif()
endfunction()

# lrpc_add_fuzzer(name target source out): part of lrpc_generate(... FUZZ).
function(lrpc_add_fuzzer name target source out)
  if(TARGET ${name})
    message(FATAL_ERROR "lrpc_generate(${target} ... FUZZ): there is a target '${name}' already")
  endif()
  add_executable(${name} "${source}")
  target_include_directories(${name} PRIVATE "${out}")
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    target_link_libraries(${name} PRIVATE $<TARGET_PROPERTY:${target},LINK_LIBRARIES>)
    target_include_directories(${name} PRIVATE $<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>)
  else()
    target_link_libraries(${name} PRIVATE ${target})
  endif()
  target_link_libraries(${name} PRIVATE lrpc::entry_fuzzer)

  if(COMMAND lrpc_options)  # this project's own
    lrpc_options(${name})
    set(libfuzzer ${LRPC_LIBFUZZER})
  else()
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    set(LRPC_FUZZ_SANITIZE "address,undefined" CACHE STRING "Sanitizers of lrpc_generate's fuzzers")
    if(LRPC_FUZZ_SANITIZE)
      target_compile_options(${name} PRIVATE -g -fsanitize=${LRPC_FUZZ_SANITIZE} -fno-sanitize-recover=all)
      target_link_options(${name} PRIVATE -fsanitize=${LRPC_FUZZ_SANITIZE})
    endif()
    include(CheckCXXSourceCompiles)
    set(CMAKE_REQUIRED_FLAGS "-fsanitize=fuzzer")
    check_cxx_source_compiles("#include <cstddef>
      extern \"C\" int LLVMFuzzerTestOneInput(const unsigned char*, std::size_t) { return 0; }" LRPC_HAVE_LIBFUZZER)
    set(libfuzzer ${LRPC_HAVE_LIBFUZZER})
    if(libfuzzer)
      target_compile_options(${name} PRIVATE -fsanitize=fuzzer-no-link)
    endif()
  endif()
  if(libfuzzer)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  elseif(TARGET lrpc_fuzz_driver)
    target_link_libraries(${name} PRIVATE lrpc_fuzz_driver)
  else()
    target_sources(${name} PRIVATE "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/lrpc_fuzz_driver.cpp")
  endif()
endfunction()
